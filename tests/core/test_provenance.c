/* The confidence that follows from a source. */
#include "core/episodic/provenance.h"
#include "tests/core/unit.h"

START_TEST(each_source_has_its_confidence)
{
    static const char *const sources[][2] = { { "user_stated", "1.0" },
                                              { "tool_verified", "0.9" },
                                              { "agent_inferred", "0.6" },
                                              { "recalled", "0.5" },
                                              { "external", "0.3" } };
    for (size_t i = 0; i < 5; i++) {
        ck_assert_str_eq(provenance_names[i], sources[i][0]);
        ck_assert_str_eq(provenance_confidence(sources[i][0]), sources[i][1]);
    }
    ck_assert_ptr_null(provenance_names[5]);
}
END_TEST

START_TEST(an_unknown_source_has_no_confidence)
{
    ck_assert_ptr_null(provenance_confidence("hearsay"));
    ck_assert_ptr_null(provenance_confidence(""));
    ck_assert_ptr_null(provenance_confidence("User_stated"));
}
END_TEST

START_TEST(the_default_is_a_source)
{
    ck_assert_str_eq(provenance_confidence(PROVENANCE_DEFAULT), "0.6");
}
END_TEST

UNIT_MAIN("provenance", each_source_has_its_confidence, an_unknown_source_has_no_confidence,
          the_default_is_a_source)
