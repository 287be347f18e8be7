/* Attributes of a model by name, compressed ones too; see om_attr.c. */
#ifndef HOSTACL_OM_ATTR_H
#define HOSTACL_OM_ATTR_H

#include "wire.h"

/* The names and texts that a compressed model keeps in one place; all 0 for a plain model. */
struct attr_table {
    bool used;            /* the model is compressed */
    size_t count;         /* of names */
    struct bytes *names;  /* in their order */
    bool *texts;          /* for each name: a number stands for a text */
    size_t value_count;   /* of texts */
    struct bytes *values; /* the texts */
};

/* The attributes of one message. */
struct attrs {
    const struct attr_table *tables[2]; /* of the model, then of the first model of the file; may be null */
    struct wire message;                /* that has the attributes */
    uint32_t field;                     /* they are in; one of the numbers below */
};

enum { MODEL_ATTRS = 11, OPERATOR_ATTRS = 10, DESCRIPTION_ATTRS = 5 };

/* Reads the table of a model. Returns a code. */
int attr_table_read(struct attr_table *table, struct wire model);
void attr_table_end(struct attr_table *table);

/* Whether every compressed name and value stands in the tables. */
bool attrs_are_known(const struct attrs *attrs);

/* The value of an attribute as a number or a text; false when there is none, or it is something else. */
bool attr_number(const struct attrs *attrs, const char *name, int64_t *value);
bool attr_text(const struct attrs *attrs, const char *name, struct bytes *value);

/* The texts of a list, as many as there are; the first ones go to texts. */
size_t attr_texts(const struct attrs *attrs, const char *name, struct bytes *texts, size_t room);

#endif
