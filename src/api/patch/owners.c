/* See owners.h. */
#include "api/patch/owners.h"

#include "api/patch/fields.h"
#include "api/patch/merge.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"

#include <string.h>

static const char managed[] = "metadata.managedFields";

/* ---- entries ---- */

static bool is_text(const json_t *entry, const char *key, const char *text)
{
    return strcmp(doc_text(entry, key, ""), text) == 0;
}

static bool is_of(const json_t *entry, const struct owner *owner)
{
    return is_text(entry, "manager", owner->manager) &&
           is_text(entry, "operation", owner->operation) &&
           is_text(entry, "subresource", owner->subresource) &&
           is_text(entry, "apiVersion", owner->api_version);
}

static json_t *find_entry(const json_t *entries, const struct owner *owner)
{
    size_t i;
    json_t *entry;
    json_array_foreach (entries, i, entry) {
        if (is_of(entry, owner)) {
            return entry;
        }
    }
    return NULL;
}

/* Takes `fields`. */
static json_t *entry_new(const struct owner *owner, json_t *fields, const char *time)
{
    json_t *entry = json_pack("{s:s, s:s, s:s, s:s, s:s, s:o}", "manager", owner->manager,
                              "operation", owner->operation, "apiVersion", owner->api_version,
                              "time", time, "fieldsType", "FieldsV1", "fieldsV1", fields);
    if (entry && *owner->subresource &&
        json_object_set_new(entry, "subresource", json_string(owner->subresource)) != 0) {
        json_decref(entry);
        return NULL;
    }
    return entry;
}

/* Sets the fields of the owner's entry, and takes `fields`. The entry's time changes only if the
 * fields do. */
static int put_entry(json_t *entries, const struct owner *owner, json_t *fields)
{
    json_t *old = find_entry(entries, owner);
    if (old && fields && json_equal(doc_at(old, "fieldsV1"), fields)) {
        json_decref(fields);
        return 0;
    }
    if (old) {
        return fields && json_object_set_new(old, "fieldsV1", fields) == 0
                   ? doc_set_text(old, "time", owner->now)
                   : MUSTER_ENOMEM;
    }
    json_t *entry = fields ? entry_new(owner, fields, owner->now) : NULL;
    return entry && json_array_append_new(entries, entry) == 0 ? 0 : MUSTER_ENOMEM;
}

/* Takes the fields from all owners but `keep`; an owner without fields is removed. */
static int take_from_others(json_t *entries, const json_t *fields, const json_t *keep)
{
    for (size_t i = json_array_size(entries); i > 0; i--) {
        json_t *entry = json_array_get(entries, i - 1);
        json_t *left = fields_without(doc_at(entry, "fieldsV1"), fields);
        if (!left) {
            return MUSTER_ENOMEM;
        }
        if (entry == keep || json_object_size(left) > 0) {
            json_t *stays = entry == keep ? json_incref(doc_at(entry, "fieldsV1")) : left;
            if (entry == keep) {
                json_decref(left);
            }
            (void)json_object_set_new(entry, "fieldsV1", stays);
        } else {
            json_decref(left);
            json_array_remove(entries, i - 1);
        }
    }
    return 0;
}

static json_t *copy_entries(const json_t *object)
{
    const json_t *entries = doc_at(object, managed);
    return json_is_array(entries) ? json_deep_copy(entries) : json_array();
}

int owners_begin(json_t *object, const struct owner *owner)
{
    muster_auto(doc) json_t *entries = json_array();
    return entries && put_entry(entries, owner, fields_of(object)) == 0
               ? doc_set(object, managed, muster_take(entries))
               : MUSTER_ENOMEM;
}

/* ---- conflicts ---- */

struct conflict {
    struct job_problems *problems;
    const json_t *entry;
};

static int add_conflict(void *arg, const char *path)
{
    const struct conflict *c = arg;
    const char *subresource = doc_text(c->entry, "subresource", "");
    bool updated = is_text(c->entry, "operation", "Update");
    job_problem_add(c->problems, JOB_ERROR, path, NULL, "conflict with \"%.128s\"%s%s%s%s%s",
                    doc_text(c->entry, "manager", ""), *subresource ? " with subresource \"" : "",
                    subresource, *subresource ? "\"" : "", updated ? " using " : "",
                    updated ? doc_text(c->entry, "apiVersion", "") : "");
    job_problem_reason(c->problems, "FieldManagerConflict");
    return 0;
}

static int find_conflicts(const json_t *entries, const json_t *changed, const json_t *own,
                          struct job_problems *problems)
{
    size_t i;
    json_t *entry;
    json_array_foreach (entries, i, entry) {
        if (entry == own) {
            continue;
        }
        muster_auto(doc) json_t *both = fields_in_both(doc_at(entry, "fieldsV1"), changed);
        struct conflict c = {problems, entry};
        if (!both || fields_list(both, add_conflict, &c) < 0) {
            return MUSTER_ENOMEM;
        }
    }
    return 0;
}

/* ---- apply ---- */

/* Returns the fields that the manager no longer applies and no other manager owns. */
static json_t *abandoned(const json_t *entries, const json_t *own, const json_t *wanted)
{
    size_t i;
    json_t *entry;
    json_t *left = own ? fields_without(doc_at(own, "fieldsV1"), wanted) : json_object();
    json_array_foreach (entries, i, entry) {
        if (entry != own && left) {
            json_t *less = fields_without(left, doc_at(entry, "fieldsV1"));
            json_decref(left);
            left = less;
        }
    }
    return left;
}

/* Returns the object with the applied fields, and without the abandoned ones. */
static int lay_over(const json_t *before, const json_t *applied, const json_t *gone, json_t **ret,
                    struct muster_err *err)
{
    muster_auto(doc) json_t *left = json_deep_copy(before);
    if (!left) {
        return err_no_memory(err);
    }
    fields_remove(left, gone);
    return merge_patch(left, applied, ret, err);
}

int owners_apply(const json_t *before, const json_t *said, const struct owner *owner, bool force,
                 struct job_problems *problems, json_t **ret, struct muster_err *err)
{
    muster_auto(doc) json_t *applied = fields_without_nulls(said);
    muster_auto(doc) json_t *entries = copy_entries(before);
    muster_auto(doc) json_t *wanted = fields_of(applied);
    muster_auto(doc) json_t *changed = fields_not_covered(applied, before);
    muster_auto(doc) json_t *after = NULL;
    const json_t *own = find_entry(entries, owner);
    if (!applied || !entries || !wanted || !changed ||
        (!force && find_conflicts(entries, changed, own, problems) < 0)) {
        return err_no_memory(err);
    }
    if (problems->errors > 0) {
        return muster_fail(err, MUSTER_ECONFLICT, "Apply failed with %zu conflict%s",
                           problems->errors, problems->errors > 1 ? "s" : "");
    }
    muster_auto(doc) json_t *gone = abandoned(entries, own, wanted);
    int r = gone ? lay_over(before, applied, gone, &after, err) : err_no_memory(err);
    if (r < 0) {
        return r;
    }
    if (take_from_others(entries, changed, own) < 0 ||
        put_entry(entries, owner, json_incref(wanted)) < 0 ||
        doc_set(after, managed, muster_take(entries)) < 0) {
        return err_no_memory(err);
    }
    *ret = muster_take(after);
    return 0;
}

/* ---- changes without apply ---- */

static int add_to_entry(json_t *entries, const struct owner *owner, json_t *changed)
{
    const json_t *own = find_entry(entries, owner);
    return put_entry(entries, owner,
                     own ? fields_joined(doc_at(own, "fieldsV1"), changed) : json_incref(changed));
}

int owners_update(const json_t *before, json_t *after, const struct owner *owner)
{
    muster_auto(doc) json_t *entries = copy_entries(before);
    muster_auto(doc) json_t *had = fields_of(before);
    muster_auto(doc) json_t *has = fields_of(after);
    muster_auto(doc) json_t *changed = fields_differing(after, before);
    muster_auto(doc) json_t *gone = had && has ? fields_without(had, has) : NULL;
    if (!entries || !changed || !gone) {
        return MUSTER_ENOMEM;
    }
    int r = json_array_size(entries) > 0 && json_object_size(changed) > 0
                ? add_to_entry(entries, owner, changed)
                : 0;
    r = r < 0 ? r : take_from_others(entries, changed, find_entry(entries, owner));
    r = r < 0 ? r : take_from_others(entries, gone, NULL);
    return r < 0 ? r : doc_set(after, managed, muster_take(entries));
}
