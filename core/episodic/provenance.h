/* Where a memory comes from, and how far it is to be believed for that alone. */
#ifndef DAYBOOK_CORE_EPISODIC_PROVENANCE_H
#define DAYBOOK_CORE_EPISODIC_PROVENANCE_H

/* The names of the sources, NULL-terminated. */
extern const char *const provenance_names[];

/* What an entry that says nothing of its source has. */
#define PROVENANCE_DEFAULT "agent_inferred"

/* The default confidence of a source, as a decimal text; NULL: unknown source. */
const char *provenance_confidence(const char *source);

#endif
