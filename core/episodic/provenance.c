/* The source of a memory, and the default confidence that follows from it. */
#include "core/episodic/provenance.h"

#include <stddef.h>
#include <string.h>

const char *const provenance_names[] = {
    "user_stated", "tool_verified", "agent_inferred", "recalled", "external", NULL,
};

/* In the order of the names: user statements rank above verified facts, and those above inferences. */
static const char *const confidences[] = { "1.0", "0.9", "0.6", "0.5", "0.3" };

const char *provenance_confidence(const char *source)
{
    for (size_t i = 0; provenance_names[i]; i++)
        if (strcmp(provenance_names[i], source) == 0)
            return confidences[i];
    return NULL;
}
