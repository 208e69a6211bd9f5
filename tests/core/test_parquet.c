/* The Parquet writer, and the Thrift structs of its metadata. tests/http/exports.test.mjs reads its files
 * with two readers. */
#include "core/parquet/parquet.h"
#include "core/parquet/thrift.h"
#include "tests/core/unit.h"

static struct arena arena;

static const char *hex(const struct buf *b)
{
    struct buf out = { .arena = &arena };
    for (size_t i = 0; i < b->len; i++)
        buf_fmt(&out, "%02x", (unsigned char)b->data[i]);
    return buf_string(&out);
}

/* ---- Thrift ---- */

static const char *varint(uint64_t value)
{
    struct buf out = { .arena = &arena };
    thrift_varint(&out, value);
    return hex(&out);
}

START_TEST(a_varint_has_seven_bits_per_byte)
{
    ck_assert_str_eq(varint(0), "00");
    ck_assert_str_eq(varint(127), "7f");
    ck_assert_str_eq(varint(128), "8001");
    ck_assert_str_eq(varint(300), "ac02");
    ck_assert_str_eq(varint(UINT32_MAX), "ffffffff0f");
    ck_assert_str_eq(varint(UINT64_MAX), "ffffffffffffffffff01");
}
END_TEST

START_TEST(a_signed_number_is_a_zigzag_varint)
{
    const struct {
        int64_t value;
        const char *hex;
    } cases[] = {
        { 0, "1600" },
        { -1, "1601" },
        { 1, "1602" },
        { -64, "167f" },
        { 64, "168001" },
        { INT64_MAX, "16feffffffffffffffff01" },
        { INT64_MIN, "16ffffffffffffffffff01" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf out = { .arena = &arena };
        struct thrift t = { .out = &out };
        thrift_begin(&t);
        thrift_i64(&t, 1, cases[i].value);
        ck_assert_str_eq(hex(&out), cases[i].hex);
    }
}
END_TEST

START_TEST(a_field_has_its_distance_to_the_field_before)
{
    struct buf out = { .arena = &arena };
    struct thrift t = { .out = &out };
    thrift_begin(&t);
    thrift_bool(&t, 1, true);
    thrift_struct(&t, 3); /* the ids of its fields start again */
    thrift_bool(&t, 2, false);
    thrift_end(&t);
    thrift_text(&t, 4, "abc");
    thrift_i32(&t, 40, 1); /* more than 15 further: the id itself */
    thrift_end(&t);
    ck_assert_str_eq(hex(&out), "11"
                                "2c"
                                "22"
                                "00"
                                "1803616263"
                                "055002"
                                "00");
}
END_TEST

START_TEST(a_list_has_its_length)
{
    struct buf out = { .arena = &arena };
    struct thrift t = { .out = &out };
    thrift_begin(&t);
    thrift_list(&t, 1, THRIFT_I32, 2);
    thrift_item_i32(&t, 0);
    thrift_item_i32(&t, 3);
    thrift_list(&t, 2, THRIFT_TEXT, 15); /* the first length that needs a byte of its own */
    ck_assert_str_eq(hex(&out), "19250006"
                                "19f80f");
}
END_TEST

/* ---- files ---- */

static const struct parquet_column columns[] = {
    { "yes", PARQUET_BOOL },     { "small", PARQUET_INT32 }, { "large", PARQUET_INT64 },
    { "ratio", PARQUET_DOUBLE }, { "at", PARQUET_TIME },     { "text", PARQUET_TEXT },
    { "data", PARQUET_JSON },
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static void add_row(struct parquet *p, int n)
{
    const bool null = n % 3 == 1;
    const char *text = arena_fmt(&arena, "row %d ü", n), *data = arena_fmt(&arena, "{\"n\":%d}", n);
    if (null) {
        for (int i = 0; i < COLUMNS; i++)
            parquet_null(p);
        return;
    }
    parquet_bool(p, n % 2);
    parquet_int(p, -n);
    parquet_int(p, INT64_C(5000000000) * n);
    parquet_double(p, n / 4.0);
    parquet_int(p, INT64_C(1780567200000000) + n);
    parquet_text(p, text, strlen(text));
    parquet_text(p, data, strlen(data));
}

static void drain(struct parquet *p, struct buf *out)
{
    while (parquet_is_due(p)) {
        size_t len;
        parquet_make(p);
        const void *piece = parquet_piece(p, &len);
        buf_add(out, piece, len);
    }
}

static struct buf file_of(int rows, const struct parquet_codec *codec, size_t group_bytes)
{
    struct buf out = { .arena = &arena };
    struct parquet *p = parquet_open(columns, COLUMNS, codec, "tests", group_bytes);
    for (int n = 0; n < rows; n++) {
        add_row(p, n);
        drain(p, &out);
    }
    parquet_end(p);
    drain(p, &out);
    parquet_free(p);
    return out;
}

static uint32_t footer_bytes(const struct buf *file)
{
    const unsigned char *end = (const unsigned char *)file->data + file->len - 8;
    return (uint32_t)end[0] | (uint32_t)end[1] << 8 | (uint32_t)end[2] << 16 | (uint32_t)end[3] << 24;
}

START_TEST(a_file_without_rows_has_its_columns)
{
    const struct buf file = file_of(0, NULL, 1000);
    ck_assert(memcmp(file.data, "PAR1", 4) == 0 && memcmp(file.data + file.len - 4, "PAR1", 4) == 0);
    ck_assert_uint_eq(footer_bytes(&file), file.len - 12);
    for (int i = 0; i < COLUMNS; i++)
        ck_assert_ptr_nonnull(memmem(file.data, file.len, columns[i].name, strlen(columns[i].name)));
}
END_TEST

/* One column of text with one row: every byte is explained. */
START_TEST(the_bytes_of_a_file_are_those_of_the_specification)
{
    const struct parquet_column one = { "a", PARQUET_TEXT };
    struct buf out = { .arena = &arena };
    struct parquet *p = parquet_open(&one, 1, NULL, "x", 1000);
    parquet_text(p, "hi", 2);
    parquet_null(p);
    parquet_end(p);
    drain(p, &out);
    parquet_free(p);
    ck_assert_str_eq(hex(&out),
                     "50415231"               /* PAR1 */
                     "1500151c151c"           /* a data page of 14 bytes, also when compressed */
                     "2c15041500150615060000" /* with 2 values, PLAIN, levels as RLE */
                     "0400000002010200"       /* levels: a run of one 1, a run of one 0 */
                     "020000006869"           /* "hi" */
                     "1502"                   /* the footer: version 1 */
                     "192c"
                     "4806736368656d61150200" /* 2 elements: the schema with 1 column */
                     "150c25021801612500"
                     "4c1c000000" /* optional bytes "a", UTF8, and the same as a string */
                     "1604"
                     "191c" /* 2 rows, 1 row group */
                     "191c26081c"
                     "150c19250006"
                     "19180161"                 /* 1 chunk at byte 4: bytes, PLAIN and RLE, "a" */
                     "15001604163e163e26080000" /* uncompressed, 2 values, 31 bytes, its page at 4 */
                     "163e1604"
                     "2608163e00" /* the row group: 31 bytes, 2 rows, at byte 4 */
                     "28017800"   /* made by "x" */
                     "49000000"
                     "50415231"); /* 73 bytes of footer, PAR1 */
}
END_TEST

/* 300 rows of alternating levels are shorter as bits: 38 bytes, the last with 4 that no row has. */
START_TEST(levels_that_alternate_are_packed_as_bits)
{
    const struct parquet_column one = { "a", PARQUET_BOOL };
    struct buf out = { .arena = &arena };
    struct parquet *p = parquet_open(&one, 1, NULL, "x", 1000);
    for (int n = 0; n < 300; n++)
        if (n % 2)
            parquet_null(p);
        else
            parquet_bool(p, true);
    parquet_end(p);
    drain(p, &out);
    parquet_free(p);
    ck_assert_ptr_nonnull(memmem(out.data, out.len, "\x27\0\0\0\x4d\x55\x55", 7));
    ck_assert_ptr_nonnull(memmem(out.data, out.len, "\x55\x05\xff\xff", 4));
}
END_TEST

START_TEST(the_same_rows_give_the_same_bytes)
{
    const struct buf a = file_of(1000, NULL, 4096), b = file_of(1000, NULL, 4096);
    ck_assert_uint_eq(a.len, b.len);
    ck_assert_int_eq(memcmp(a.data, b.data, a.len), 0);
}
END_TEST

static size_t no_bound(size_t len)
{
    return len + 3;
}

static size_t reversed(void *to, size_t most, const void *from, size_t len)
{
    ck_assert_uint_eq(most, len + 3);
    for (size_t i = 0; i < len; i++)
        ((char *)to)[i] = ((const char *)from)[len - 1 - i];
    return len;
}

START_TEST(pages_go_through_the_codec)
{
    const struct parquet_codec codec = { PARQUET_ZSTD, no_bound, reversed };
    const struct buf plain = file_of(3, NULL, 1000000), packed = file_of(3, &codec, 1000000);
    ck_assert_uint_eq(plain.len, packed.len);
    ck_assert_ptr_nonnull(memmem(plain.data, plain.len, "row 2 ", 6));
    ck_assert_ptr_null(memmem(packed.data, packed.len, "row 2 ", 6));
    ck_assert_ptr_nonnull(memmem(packed.data, packed.len, " 2 wor", 6));
}
END_TEST

START_TEST(a_row_group_ends_when_it_has_enough_bytes)
{
    struct parquet *p = parquet_open(columns, COLUMNS, NULL, "tests", 500);
    struct buf out = { .arena = &arena };
    int groups = 0;
    for (int n = 0; n < 1000; n++) {
        add_row(p, n);
        ck_assert_uint_lt(parquet_bytes(p), 600);
        groups += parquet_is_due(p);
        drain(p, &out);
    }
    ck_assert_int_gt(groups, 50);
    parquet_free(p);
}
END_TEST

UNIT_MAIN("parquet", a_varint_has_seven_bits_per_byte, a_signed_number_is_a_zigzag_varint,
          a_field_has_its_distance_to_the_field_before, a_list_has_its_length,
          a_file_without_rows_has_its_columns, the_bytes_of_a_file_are_those_of_the_specification,
          levels_that_alternate_are_packed_as_bits, the_same_rows_give_the_same_bytes,
          pages_go_through_the_codec, a_row_group_ends_when_it_has_enough_bytes)
