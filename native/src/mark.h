/* Marks: what a notify or an event of several processes is made of; see mark.c. */
#ifndef HOSTACL_MARK_H
#define HOSTACL_MARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a key as text, the closing zero included. */
#define MARK_KEY_BYTES 64

enum mark_kind { MARK_NOTIFY, MARK_EVENT };

/* State of a recording with a number. */
enum mark_state { MARK_PENDING, MARK_DONE, MARK_DROPPED };

struct mark;

/* A mark of this process; null when the host refuses the memory or the thread for it. */
struct mark *mark_make(enum mark_kind kind);

/* The key by which other processes find the mark; false when the host refuses the file for it. With check_pids only
 * processes that mark_allow listed may import; that is settled by the first call. */
bool mark_export(struct mark *mark, bool check_pids, char key[MARK_KEY_BYTES]);

/* Lets further processes import an exported mark; false when it is none or the host is out of memory. */
bool mark_allow(struct mark *mark, const int32_t *pids, size_t count);

/* Finds a mark of another process. Returns a code; a refusal is recorded. */
int mark_import(enum mark_kind kind, const char *key, struct mark **out);

/* Holds a mark, lets it go; the last one gives the table lock up for a moment. */
void mark_enter(struct mark *mark);
void mark_leave(struct mark *mark);

/* The object that is woken here when the mark has changed; the mark itself before. */
void mark_wakes(struct mark *mark, const void *object);

/* As a flag: sets it; takes it, false when it was not set; whether it is set. */
void mark_set(struct mark *mark);
bool mark_take(struct mark *mark);
bool mark_is_set(const struct mark *mark);

/* As a row of recordings: a new one, the number of the latest (0: none), their state, their end. */
uint64_t mark_issue(struct mark *mark);
uint64_t mark_latest(const struct mark *mark);
enum mark_state mark_state(const struct mark *mark, uint64_t number);
void mark_end(struct mark *mark, uint64_t number, bool dropped);

#endif
