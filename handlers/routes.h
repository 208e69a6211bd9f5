/* The route tables of all resources. */
#ifndef DAYBOOK_HANDLERS_ROUTES_H
#define DAYBOOK_HANDLERS_ROUTES_H

#include "server/dispatch/call.h"

extern const struct route meta_routes[];
extern const struct route docs_routes[];
extern const struct route lesson_routes[];
extern const struct route materialize_routes[];
extern const struct route tick_routes[];
extern const struct route trade_history_routes[];
extern const struct route skill_routes[];
extern const struct route deployment_routes[];
extern const struct route context_routes[];
extern const struct route snapshot_routes[];
extern const struct route episodic_routes[];
extern const struct route episodic_bulk_routes[];
extern const struct route rerun_routes[];
extern const struct route evict_routes[];
extern const struct route episodic_search_routes[];
extern const struct route embeddings_routes[];
extern const struct route research_routes[];
extern const struct route savings_routes[];
extern const struct route reflection_routes[];
extern const struct route reflection_note_routes[];
extern const struct route lessons_segment_routes[];
extern const struct route recall_routes[];
extern const struct route ab_routes[];
extern const struct route memory_routes[];
extern const struct route thesis_routes[];
extern const struct route order_routes[];
extern const struct route event_routes[];
extern const struct route memory_search_routes[];
extern const struct route retrieval_routes[];
extern const struct route memory_state_routes[];
extern const struct route story_routes[];
extern const struct route fact_routes[];
extern const struct route fact_decay_routes[];
extern const struct route fact_merge_routes[];
extern const struct route write_policy_routes[];

#endif
