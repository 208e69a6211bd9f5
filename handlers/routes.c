/* The route tables of all resources, in the order in which dispatch searches them. */
#include "handlers/routes.h"

#include "server/dispatch/route.h"

const struct route *const route_tables[] = {
    meta_routes,
    docs_routes,
    lesson_routes,
    skill_routes,
    deployment_routes,
    context_routes,
    snapshot_routes,
    materialize_routes,
    tick_routes,
    trade_history_routes,
    episodic_routes,
    episodic_bulk_routes,
    rerun_routes,
    evict_routes,
    episodic_search_routes,
    embeddings_routes,
    research_routes,
    savings_routes,
    reflection_routes,
    reflection_note_routes,
    lessons_segment_routes,
    recall_routes,
    ab_routes,
    memory_routes,
    thesis_routes,
    order_routes,
    event_routes,
    memory_search_routes,
    retrieval_routes,
    memory_state_routes,
    story_routes,
    NULL,
};
