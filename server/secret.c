/* Secrets in files. */
#include "server/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/arena.h"
#include "server/log.h"

enum { SECRET_MAX = 8192 };

static struct arena secrets;

const char *secret_copy(const char *secret)
{
    return arena_text(&secrets, secret);
}

/* Cuts the white space off both ends. */
static char *trim(char *text)
{
    static const char space[] = " \t\r\n";
    size_t len = strlen(text);
    while (len && strchr(space, text[len - 1]))
        len--;
    text[len] = '\0';
    return text + strspn(text, space);
}

bool secret_read(const char *where, const char *path, const char **secret)
{
    char text[SECRET_MAX + 1];
    size_t len = 0;
    ssize_t n = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && len < SECRET_MAX && (n = read(fd, text + len, SECRET_MAX - len)) > 0)
        len += (size_t)n;
    const int why = errno;
    if (fd >= 0)
        close(fd);
    if (fd < 0 || n < 0)
        return log_failure("%s: cannot read %s: %s", where, path, strerror(why));
    text[len] = '\0';
    const bool whole = len < SECRET_MAX && strlen(text) == len;
    const char *found = trim(text);
    const bool valid = whole && *found && !strpbrk(found, "\r\n");
    *secret = valid ? secret_copy(found) : NULL;
    explicit_bzero(text, sizeof text);
    return valid || log_failure("%s: %s must hold one line", where, path);
}

void secret_check_mode(const char *path)
{
    struct stat s;
    if (stat(path, &s) == 0 && (s.st_mode & S_IROTH))
        log_event(LOG_WARN, "secret_readable", "file=\"%s\" reason=\"every user may read it: chmod o= it\"",
                  path);
}
