/* The weights of the built-in embedder, for tests that link core alone. */
#ifndef DAYBOOK_TESTS_CORE_EMBED_WEIGHTS_H
#define DAYBOOK_TESTS_CORE_EMBED_WEIGHTS_H

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/embed/embed.h"
#include "tests/core/unit.h"

static inline const unsigned char *embed_weights_map(size_t *len)
{
    int fd = open(TEST_DATA "/../../core/embed/weights.bin", O_RDONLY | O_CLOEXEC);
    struct stat st;
    ck_assert(fd >= 0 && fstat(fd, &st) == 0);
    const unsigned char *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    ck_assert_ptr_ne(bytes, MAP_FAILED);
    close(fd);
    *len = (size_t)st.st_size;
    return bytes;
}

/* Opened once per test, because each test runs in its own process. */
struct embedder {
    struct embed embed;
    struct embed_scratch *scratch;
};

static inline void embedder_open(struct embedder *e)
{
    size_t len;
    const unsigned char *bytes = embed_weights_map(&len);
    ck_assert(embed_open(bytes, len, &e->embed));
    void *scratch;
    ck_assert_int_eq(posix_memalign(&scratch, 64, embed_scratch_bytes()), 0);
    e->scratch = scratch;
}

static inline void embedder_close(struct embedder *e)
{
    free(e->scratch);
}

static inline double embed_cosine(const float *a, const float *b)
{
    double sum = 0;
    for (size_t i = 0; i < EMBED_DIM; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

#endif
