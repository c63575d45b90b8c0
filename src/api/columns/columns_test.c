/* Checks what `kubectl get pods` shows of pods in every state. */
#include "api/columns/columns.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "base/time/timestamp.h"

#include <stdio.h>

static const char now[] = "2026-01-01T00:10:00Z";

static const struct row {
    const char *pod;
    const char *cells; /* ready, status, restarts */
} rows[] = {
    {"{'spec':{'containers':[{}]},'status':{'phase':'Pending'}}", "0/1 Pending 0"},
    {"{'spec':{'containers':[{}]},'status':{'phase':'Running','containerStatuses':[{'ready':true,"
     "'state':{'running':{}}}]}}",
     "1/1 Running 0"},
    {"{'spec':{'containers':[{},{}]},'status':{'phase':'Running','containerStatuses':[{'ready':"
     "true,'state':{'running':{}}},{'state':{'terminated':{'reason':'Completed','exitCode':0}}}]}}",
     "1/2 Running 0"},
    {"{'spec':{'containers':[{}]},'status':{'phase':'Failed','containerStatuses':[{'state':{"
     "'terminated':{'reason':'Error','exitCode':3}}}]}}",
     "0/1 Error 0"},
    {"{'spec':{'containers':[{}]},'status':{'phase':'Failed','containerStatuses':[{'state':{"
     "'terminated':{'exitCode':3}}}]}}",
     "0/1 ExitCode:3 0"},
    {"{'spec':{'containers':[{}]},'status':{'phase':'Failed','containerStatuses':[{'state':{"
     "'terminated':{'signal':9}}}]}}",
     "0/1 Signal:9 0"},
    {"{'spec':{'containers':[{}]},'status':{'phase':'Running','containerStatuses':[{'restartCount':"
     "4,'state':{'waiting':{'reason':'CrashLoopBackOff'}},'lastState':{'terminated':{'finishedAt':"
     "'2026-01-01T00:09:30Z'}}}]}}",
     "0/1 CrashLoopBackOff 4 (30s ago)"},
    {"{'spec':{'containers':[{}],'initContainers':[{},{}]},'status':{'phase':'Pending',"
     "'initContainerStatuses':[{'state':{'terminated':{'exitCode':0}}},{'state':{'running':{}}}]}}",
     "0/1 Init:1/2 0"},
    {"{'spec':{'containers':[{}],'initContainers':[{}]},'status':{'phase':'Pending',"
     "'initContainerStatuses':[{'state':{'terminated':{'exitCode':1,'reason':'Error'}}}]}}",
     "0/1 Init:Error 0"},
    {"{'metadata':{'deletionTimestamp':'x'},'spec':{'containers':[{}]},'status':{'phase':"
     "'Running','containerStatuses':[{'ready':true,'state':{'running':{}}}]}}",
     "1/1 Terminating 0"},
    {"{'spec':{'containers':[{}]},'status':{'phase':'Failed','reason':'Evicted'}}",
     "0/1 Evicted 0"},
    {"{}", "0/0 Unknown 0"},
};

static void pods_show_what_they_are_at(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        muster_auto(doc) json_t *pod = parse(rows[i].pod);
        char cells[256] = "";
        for (int c = 1; c <= 3; c++) {
            muster_auto(doc) json_t *cell = column_cell(&columns_pod[c], pod, timestamp_read(now));
            (void)snprintf(cells + strlen(cells), sizeof cells - strlen(cells), "%s%s",
                           c > 1 ? " " : "", json_string_value(cell));
        }
        assert_string_equal(cells, rows[i].cells);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_show_what_they_are_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
