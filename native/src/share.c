/* Memory shared between processes of one machine.
 *
 * An offer is a record in a small memory file of the exporter, which says in which memory file the bytes are and where.
 * What is given out is a number: process, file descriptor of the record, and a random part.
 *
 *   bits 63..42 process | 41..22 descriptor | 21..0 random, with bit 0 set
 *
 * An importer opens the record and the memory file as /proc/PROCESS/fd/NUMBER, compares the random part and the file's
 * identity, so that a number of a process that is gone can never name something else, and maps the bytes. Both sides
 * then use the same pages. Nothing has a name in a file system, nobody has to serve requests, and a process that dies
 * leaves nothing behind: its files go when the last user has unmapped them. The host's own rules decide who may open
 * the files of another process (same user, same process namespace).
 *
 *   record: header | extents of the memory file | processes that may import
 *
 * An importer holds a shared lock on the record while it uses the memory; the kernel drops it with the process. The
 * exporter asks for an exclusive lock to learn whether anybody is left.
 *
 * Thread safety: callers hold the table lock. */
#include "share.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "errors.h"

#define MAGIC 0x68736863616c6831u
#define RANDOM_BITS 22
#define FD_BITS 20
#define MAX_PIDS 4096
#define MAX_EXTENTS ((uint32_t)1 << 24)

/* Head of a record. */
struct header {
    uint64_t magic;            /* MAGIC */
    uint64_t token;            /* number of the offer */
    uint64_t device;           /* file system of the memory file */
    uint64_t inode;            /* its number there */
    uint64_t bytes;            /* bytes offered */
    int32_t fd;                /* descriptor of the memory file in the exporter */
    uint32_t cls;              /* page class */
    uint32_t attr;             /* kind of memory */
    aclrtMemLocation location; /* where it is */
    uint32_t huge;             /* the memory file has huge pages of the host */
    uint32_t extents;          /* pieces of the memory file */
    uint32_t check_pids;       /* only listed processes may import */
    uint32_t pids;             /* processes listed */
    uint32_t ended;            /* nobody may import any more */
};

/* A piece of the memory file. */
struct piece {
    uint64_t at;  /* offset in the file */
    uint64_t len; /* bytes */
};

struct share {
    struct header header; /* as written */
    int record;           /* file of the record */
    uint64_t owner;       /* address of the block it is, or 0 */
    struct share *next;   /* list of all */
};

static struct share *all;
static uint64_t count;
static uint64_t import_count;

uint64_t share_token(const struct share *share) {
    return share->header.token;
}

uint64_t share_owner(const struct share *share) {
    return share->owner;
}

bool share_ended(const struct share *share) {
    return share->header.ended;
}

void share_text(uint64_t token, char text[SHARE_TEXT_BYTES]) {
    memset(text, 0, SHARE_TEXT_BYTES);
    snprintf(text, SHARE_TEXT_BYTES, "hostacl-memory-%016llx", (unsigned long long)token);
}

bool share_parse(const char *text, uint64_t *token) {
    char again[SHARE_TEXT_BYTES];
    unsigned long long number = 0;
    if (sscanf(text, "hostacl-memory-%16llx", &number) != 1)
        return false;
    *token = number;
    share_text(*token, again);
    return !strcmp(text, again);
}

static pid_t token_process(uint64_t token) {
    return (pid_t)(token >> (RANDOM_BITS + FD_BITS));
}

/* Number of an offer with its record in that descriptor; 0 when it cannot be made. */
static uint64_t make_token(int record) {
    uint64_t random = 0;
    uint64_t process = (uint64_t)getpid();
    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random) || record >> FD_BITS ||
        process >> (64 - RANDOM_BITS - FD_BITS))
        return 0;
    random &= ((uint64_t)1 << RANDOM_BITS) - 1;
    return process << (RANDOM_BITS + FD_BITS) | (uint64_t)record << RANDOM_BITS | random | 1;
}

/* Not inlined: under the thread sanitizer gcc 12 would take a struct for its first field and warn of its size. */
__attribute__((noinline)) static bool write_all(int fd, const void *bytes, size_t len, uint64_t at) {
    return pwrite(fd, bytes, len, (off_t)at) == (ssize_t)len;
}

static bool read_all(int fd, void *bytes, size_t len, uint64_t at) {
    return pread(fd, bytes, len, (off_t)at) == (ssize_t)len;
}

static uint64_t piece_place(uint32_t index) {
    return sizeof(struct header) + index * sizeof(struct piece);
}

static uint64_t pid_place(const struct header *header, uint32_t index) {
    return piece_place(header->extents) + index * sizeof(int32_t);
}

/* Writes the pieces of the offered range behind the place of the header and counts them. */
static bool write_pieces(struct share *share, const struct share_offer *offer) {
    uint64_t done = 0;
    while (done < offer->bytes) {
        uint64_t offset = offer->offset + done;
        const struct extent *extent = pages_extent(offer->pages, offset);
        uint64_t len = extent->at + extent->len - offset;
        if (len > offer->bytes - done)
            len = offer->bytes - done;
        struct file_place place = phys_file_place(offer->phys, extent->phys + (offset - extent->at));
        struct piece piece = {.at = place.at, .len = len};
        if (!write_all(share->record, &piece, sizeof(piece), piece_place(share->header.extents++)))
            return false;
        share->header.fd = place.fd;
        done += len;
    }
    return true;
}

static bool write_record(struct share *share, const struct share_offer *offer) {
    struct stat file;
    if (!write_pieces(share, offer) || fstat(share->header.fd, &file))
        return false;
    share->header.device = (uint64_t)file.st_dev;
    share->header.inode = (uint64_t)file.st_ino;
    share->header.token = make_token(share->record);
    return share->header.token && write_all(share->record, &share->header, sizeof(share->header), 0);
}

struct share *share_open(const struct share_offer *offer) {
    struct share *share = calloc(1, sizeof(*share));
    if (!share)
        return NULL;
    share->header = (struct header){.magic = MAGIC,
                                    .bytes = offer->bytes,
                                    .cls = offer->pages->cls,
                                    .attr = (uint32_t)offer->attr,
                                    .location = offer->location,
                                    .huge = offer->phys->pools[offer->pages->cls].huge,
                                    .check_pids = offer->check_pids};
    share->owner = offer->owner;
    share->record = memfd_create("hostacl-share", MFD_CLOEXEC);
    if (share->record < 0 || !write_record(share, offer)) {
        if (share->record >= 0)
            close(share->record);
        free(share);
        return NULL;
    }
    share->next = all;
    all = share;
    count++;
    return share;
}

struct share *share_find(uint64_t token) {
    struct share *share = all;
    while (share && share->header.token != token)
        share = share->next;
    return share;
}

bool share_allow(struct share *share, const int32_t *pids, size_t number) {
    struct header *header = &share->header;
    if (number > MAX_PIDS || header->pids + number > MAX_PIDS ||
        !write_all(share->record, pids, number * sizeof(*pids), pid_place(header, header->pids)))
        return false;
    header->pids += (uint32_t)number;
    return write_all(share->record, header, sizeof(*header), 0);
}

void share_drop(struct share *share) {
    struct share **link = &all;
    while (*link != share)
        link = &(*link)->next;
    *link = share->next;
    count--;
    close(share->record);
    free(share);
}

bool share_end(struct share *share) {
    share->header.ended = 1;
    write_all(share->record, &share->header, sizeof(share->header), 0);
    if (flock(share->record, LOCK_EX | LOCK_NB))
        return false;
    share_drop(share);
    return true;
}

uint64_t shares_count(void) {
    return count;
}

/* Opens a file of another process; -1 when that is not possible. */
static int open_file_of(pid_t process, int fd, int flags) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)process, fd);
    return open(path, flags | O_CLOEXEC);
}

/* Opens, locks and reads a record; false when there is no such offer. */
static bool read_record(uint64_t token, int *record, struct header *header) {
    int fd = (int)(token >> RANDOM_BITS & (((uint64_t)1 << FD_BITS) - 1));
    *record = open_file_of(token_process(token), fd, O_RDONLY);
    if (*record < 0)
        return false;
    bool good = read_all(*record, header, sizeof(*header), 0) && header->magic == MAGIC && header->token == token &&
                !flock(*record, LOCK_SH) && read_all(*record, header, sizeof(*header), 0) && !header->ended &&
                header->cls < PAGE_CLASSES && header->extents && header->extents <= MAX_EXTENTS &&
                header->pids <= MAX_PIDS;
    if (!good)
        close(*record);
    return good;
}

static bool may_import(int record, const struct header *header) {
    int32_t pid = 0;
    for (uint32_t i = 0; header->check_pids && i < header->pids; i++) {
        if (read_all(record, &pid, sizeof(pid), pid_place(header, i)) && pid == getpid())
            return true;
    }
    return !header->check_pids;
}

/* Opens the memory file of an offer; -1 when it is not the file the record speaks of. */
static int open_memory(const struct header *header) {
    struct stat file;
    int fd = open_file_of(token_process(header->token), header->fd, O_RDWR);
    if (fd < 0)
        return -1;
    if (!fstat(fd, &file) && (uint64_t)file.st_dev == header->device && (uint64_t)file.st_ino == header->inode)
        return fd;
    close(fd);
    return -1;
}

/* Reserves a window at a multiple of the page. */
static bool reserve_window(struct import *import, const struct header *header) {
    uint64_t page_bytes = page_class_bytes((enum page_class)header->cls);
    import->mapped_bytes = header->bytes + page_bytes;
    import->mapped = mmap(NULL, import->mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (import->mapped == MAP_FAILED)
        return false;
    uint64_t window = ((uint64_t)(uintptr_t)import->mapped + page_bytes - 1) & ~(page_bytes - 1);
    import->phys = phys_foreign((void *)(uintptr_t)window, header->bytes, !header->huge);
    import->pages = (struct pages){.cls = (enum page_class)header->cls, .bytes = header->bytes};
    import->pages.extents =
        header->extents == 1 ? &import->pages.single : calloc(header->extents, sizeof(struct extent));
    return import->pages.extents;
}

/* Maps the pieces of the memory file one behind the other into the window. */
static bool map_pieces(struct import *import, const struct header *header, int memory) {
    uint64_t done = 0;
    for (uint32_t i = 0; i < header->extents; i++) {
        struct piece piece;
        if (!read_all(import->record, &piece, sizeof(piece), piece_place(i)) || !piece.len ||
            piece.len > header->bytes - done)
            return false;
        void *at = import->phys.window + done;
        if (mmap(at, piece.len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, memory,
                 (off_t)piece.at) != at)
            return false;
        import->pages.extents[import->pages.count++] = (struct extent){.at = done, .phys = done, .len = piece.len};
        done += piece.len;
    }
    madvise(import->phys.window, header->bytes, MADV_DONTFORK);
    return done == header->bytes;
}

/* The import of a record that is open and locked; null when the host refuses the mappings. */
static struct import *make_import(int record, const struct header *header) {
    struct import *import = calloc(1, sizeof(*import));
    int memory = import ? open_memory(header) : -1;
    if (!import) {
        close(record);
        return NULL;
    }
    import->record = record;
    import->token = header->token;
    import->attr = (aclrtMemAttr)header->attr;
    import->location = header->location;
    import->mapped = MAP_FAILED;
    import_count++;
    bool good = memory >= 0 && reserve_window(import, header) && map_pieces(import, header, memory);
    if (memory >= 0)
        close(memory);
    if (good)
        return import;
    import_close(import);
    return NULL;
}

int import_open(uint64_t token, struct import **out) {
    int record;
    struct header header;
    if (token_process(token) == getpid())
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR,
                           "the memory is of this process; only another process can import it");
    if (!read_record(token, &record, &header))
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_DRV_INTERNAL_ERROR,
                           "no process offers memory as 0x%llx, or its files cannot be opened",
                           (unsigned long long)token);
    if (!may_import(record, &header)) {
        close(record);
        return error_raise(ERROR_DRIVER, ACL_ERROR_RT_NO_PERMISSION,
                           "process %d does not let process %d import; it must list it first",
                           (int)token_process(token), (int)getpid());
    }
    *out = make_import(record, &header);
    if (*out)
        return ACL_SUCCESS;
    return error_raise(ERROR_MEMORY, ACL_ERROR_RT_MEMORY_ALLOCATION, "%llu bytes of process %d cannot be mapped",
                       (unsigned long long)header.bytes, (int)token_process(token));
}

void import_close(struct import *import) {
    if (import->mapped != MAP_FAILED)
        munmap(import->mapped, import->mapped_bytes);
    if (import->pages.extents != &import->pages.single)
        free(import->pages.extents);
    close(import->record);
    import_count--;
    free(import);
}

uint64_t imports_count(void) {
    return import_count;
}
