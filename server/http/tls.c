/* TLS: the certificate and its private key. A reload replaces the pair while connections use the old one. */
#include "server/http/tls.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/x509.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "server/http/http_internal.h"
#include "server/log.h"
#include "server/secret.h"

enum { CHAIN_MAX = 16, KEY_ID_SIZE = 32, TIME_SIZE = 32, REASON_SIZE = 512, WARN_DAYS = 14, DAY_S = 86400 };

struct tls_pair {
    atomic_int uses;
    gnutls_pcert_st chain[CHAIN_MAX];
    unsigned length;
    gnutls_privkey_t key;
    time_t expires;
};

/* Set by the main thread before the loops start; it alone reloads. */
static const struct config *files;
static struct tls_pair *current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of `current` */

/* Why a pair cannot be used. Always returns false. */
struct reason {
    char text[REASON_SIZE];
};

static bool __attribute__((format(printf, 2, 3))) fail(struct reason *why, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(why->text, sizeof why->text, fmt, args);
    va_end(args);
    return false;
}

static const char *time_text(time_t at, char out[TIME_SIZE])
{
    struct tm parts;
    strftime(out, TIME_SIZE, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &parts));
    return out;
}

/* ---- loading ---- */

static bool read_pem(const char *path, gnutls_datum_t *pem, struct reason *why)
{
    struct stat s;
    if (stat(path, &s) != 0 || access(path, R_OK) != 0)
        return fail(why, "cannot read %s: %s", path, strerror(errno));
    if (!S_ISREG(s.st_mode)) /* reading a FIFO would wait for its writer */
        return fail(why, "cannot read %s: it is no regular file", path);
    if (gnutls_load_file(path, pem) < 0)
        return fail(why, "cannot read %s", path);
    return true;
}

/* Checks that a server may use the certificate now. */
static bool check_certificate(gnutls_x509_crt_t crt, const char *path, time_t *expires, struct reason *why)
{
    char at[TIME_SIZE];
    const time_t now = time(NULL), begins = gnutls_x509_crt_get_activation_time(crt);
    *expires = gnutls_x509_crt_get_expiration_time(crt);
    if (*expires <= now)
        return fail(why, "the certificate of %s expired at %s", path, time_text(*expires, at));
    if (begins > now)
        return fail(why, "the certificate of %s is not valid before %s", path, time_text(begins, at));
    if (!gnutls_x509_crt_check_key_purpose(crt, GNUTLS_KP_TLS_WWW_SERVER, 0))
        return fail(why, "the certificate of %s is not for servers", path);
    return true;
}

static bool load_chain(struct tls_pair *pair, const char *path, struct reason *why)
{
    gnutls_datum_t pem;
    gnutls_x509_crt_t *list = NULL;
    unsigned count = 0;
    if (!read_pem(path, &pem, why))
        return false;
    int got = gnutls_x509_crt_list_import2(&list, &count, &pem, GNUTLS_X509_FMT_PEM, 0);
    gnutls_free(pem.data);
    if (got < 0 || !count)
        return fail(why, "%s holds no certificate in PEM: %s", path, gnutls_strerror(got));
    bool ok = check_certificate(list[0], path, &pair->expires, why);
    unsigned length = count; /* may become less: certificates that are not part of the chain are dropped */
    if (ok && (count > CHAIN_MAX ||
               gnutls_pcert_import_x509_list(pair->chain, list, &length, GNUTLS_X509_CRT_LIST_SORT) < 0))
        ok = fail(why, "%s is no chain of certificates that begins with the one of the server", path);
    pair->length = ok ? length : 0;
    for (unsigned i = 0; i < count; i++)
        gnutls_x509_crt_deinit(list[i]);
    gnutls_free(list);
    return ok;
}

static bool load_key(struct tls_pair *pair, const char *path, struct reason *why)
{
    gnutls_datum_t pem;
    if (!read_pem(path, &pem, why))
        return false;
    int got = gnutls_privkey_init(&pair->key);
    if (got >= 0)
        got = gnutls_privkey_import_x509_raw(pair->key, &pem, GNUTLS_X509_FMT_PEM, NULL, 0);
    gnutls_memset(pem.data, 0, pem.size);
    gnutls_free(pem.data);
    if (got == GNUTLS_E_DECRYPTION_FAILED)
        return fail(why, "the private key of %s has a password, which is not supported", path);
    if (got < 0)
        return fail(why, "%s holds no private key in PEM: %s", path, gnutls_strerror(got));
    return true;
}

/* Whether the key belongs to the first certificate. */
static bool belong_together(const struct tls_pair *pair)
{
    unsigned char ids[2][KEY_ID_SIZE];
    size_t sizes[] = { KEY_ID_SIZE, KEY_ID_SIZE };
    gnutls_pubkey_t of_key;
    if (gnutls_pubkey_init(&of_key) < 0)
        return false;
    bool same =
        gnutls_pubkey_import_privkey(of_key, pair->key, 0, 0) >= 0 &&
        gnutls_pubkey_get_key_id(of_key, GNUTLS_KEYID_USE_SHA256, ids[0], &sizes[0]) >= 0 &&
        gnutls_pubkey_get_key_id(pair->chain[0].pubkey, GNUTLS_KEYID_USE_SHA256, ids[1], &sizes[1]) >= 0 &&
        memcmp(ids[0], ids[1], KEY_ID_SIZE) == 0;
    gnutls_pubkey_deinit(of_key);
    return same;
}

/* NULL: the files cannot be used. */
static struct tls_pair *load(struct reason *why)
{
    struct tls_pair *pair = memory_zero(1, sizeof *pair);
    pair->uses = 1;
    if (load_chain(pair, files->tls_cert, why) && load_key(pair, files->tls_key, why)) {
        if (belong_together(pair))
            return pair;
        fail(why, "the private key of %s does not belong to the certificate of %s", files->tls_key,
             files->tls_cert);
    }
    tls_release(pair);
    return NULL;
}

/* ---- the current pair ---- */

bool tls_is_on(void)
{
    return current;
}

struct tls_pair *tls_take(void)
{
    pthread_mutex_lock(&lock);
    struct tls_pair *pair = current;
    pair->uses++;
    pthread_mutex_unlock(&lock);
    return pair;
}

void tls_release(struct tls_pair *pair)
{
    if (!pair || --pair->uses)
        return;
    for (unsigned i = 0; i < pair->length; i++)
        gnutls_pcert_deinit(&pair->chain[i]);
    if (pair->key)
        gnutls_privkey_deinit(pair->key);
    free(pair);
}

void tls_present(struct tls_pair *pair, gnutls_pcert_st **chain, unsigned *length, gnutls_privkey_t *key)
{
    *chain = pair->chain;
    *length = pair->length;
    *key = pair->key;
}

static void replace(struct tls_pair *pair)
{
    pthread_mutex_lock(&lock);
    struct tls_pair *old = current;
    current = pair;
    pthread_mutex_unlock(&lock);
    tls_release(old);
}

int64_t tls_expiry(void)
{
    pthread_mutex_lock(&lock);
    int64_t expires = current ? current->expires : 0;
    pthread_mutex_unlock(&lock);
    return expires;
}

void tls_check_expiry(void)
{
    char at[TIME_SIZE];
    const time_t left = (time_t)tls_expiry() - time(NULL);
    if (current && left < WARN_DAYS * DAY_S)
        log_event(LOG_WARN, "tls_expires_soon", "file=\"%s\" expires=%s days=%lld", files->tls_cert,
                  time_text(current->expires, at), (long long)left / DAY_S);
}

/* ---- start and reload ---- */

bool tls_open(const struct config *config)
{
    struct reason why;
    if (!config->tls_cert[0] && !config->tls_key[0])
        return true;
    if (!config->tls_cert[0] || !config->tls_key[0])
        return log_failure("--tls-cert and --tls-key must be given together");
    files = config;
    struct tls_pair *pair = load(&why);
    if (!pair)
        return log_failure("TLS: %s", why.text);
    secret_check_mode(config->tls_key);
    replace(pair);
    tls_check_expiry();
    return true;
}

void tls_reload(void)
{
    struct reason why;
    char at[TIME_SIZE];
    if (!current) {
        log_event(LOG_INFO, "reload", "reason=\"without TLS there is nothing to reload\"");
        return;
    }
    struct tls_pair *pair = load(&why);
    if (!pair) {
        log_event(LOG_ERROR, "tls_reload_failed", "reason=\"%s; the old certificate stays in use\"",
                  why.text);
        return;
    }
    log_event(LOG_INFO, "tls_reloaded", "expires=%s", time_text(pair->expires, at));
    replace(pair);
    tls_check_expiry();
}

void tls_close(void)
{
    replace(NULL);
}
