/* headers_test compiles this as C and as C++: the public headers need no other header, cause no
 * warnings, and do not touch the program's macros. */
#define X(name) name##_of_the_program

#include <muster/muster.h>

static int X(value) = 1;

static const struct muster_err err = MUSTER_ERR_INIT;
static const struct muster_store store = MUSTER_STORE_INIT;
static const struct muster_comm_options options = MUSTER_COMM_OPTIONS_INIT;
static const struct muster_message message = MUSTER_MESSAGE_INIT;
static const struct muster_call call = MUSTER_CALL_INIT;
static const struct muster_comm_state state = MUSTER_COMM_STATE_INIT;

static const struct muster_elastic_options elastic_options = MUSTER_ELASTIC_OPTIONS_INIT;
static const struct muster_elastic_pass elastic_pass = MUSTER_ELASTIC_PASS_INIT;
static const struct muster_elastic_info elastic_info = MUSTER_ELASTIC_INFO_INIT;

#if MUSTER_VERSION_NUMBER < 100
#error "the version can be compared by the preprocessor"
#endif

static const int limits[] = {MUSTER_MAX_RANKS, MUSTER_MAX_IN_FLIGHT, MUSTER_EINVAL};

int main(void)
{
    return (int)(err.struct_size + store.struct_size + options.struct_size + message.struct_size +
                 call.struct_size + state.struct_size + elastic_options.struct_size +
                 elastic_pass.struct_size + elastic_info.struct_size) +
           limits[0] + value_of_the_program;
}
