/* The source of a memory, and the default confidence that follows from it. */
#ifndef DAYBOOK_CORE_EPISODIC_PROVENANCE_H
#define DAYBOOK_CORE_EPISODIC_PROVENANCE_H

/* The names of the sources, NULL-terminated. */
extern const char *const provenance_names[];

/* The source of an entry that names none. */
#define PROVENANCE_DEFAULT "agent_inferred"

/* The default confidence of a source, as a decimal text; NULL: unknown source. */
const char *provenance_confidence(const char *source);

#endif
