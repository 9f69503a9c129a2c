//! What only a cluster has: CLUSTER, and how a client stands to the slots of a node.
//!
//! Nodes do not join yet, so every one of them says that this instance is no part of a cluster, as
//! Redis does with `cluster-enabled no`. They are declared so that clients which ask what a server
//! can do, and probe whether it is a node, get Redis's own answers.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, Shape};
use resp::{Args, Writer};

use crate::handler::runs;
use crate::{Command, CommandError, Context};

/// The family.
pub(super) const COMMANDS: &[Command] = &[ASKING, CLUSTER, READONLY, READWRITE];

fn no_cluster(_: &mut Context<'_>, _: Args<'_>, _: &mut Writer<'_>) -> Result<(), CommandError> {
    Err("ERR This instance has cluster support disabled".into())
}

const ASKING: Command = Command {
    name: "asking",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Lets the next command through to a slot that is being imported.",
    complexity: "O(1)",
    arity: Arity::exactly(1),
    flags: Flags::FAST,
    acl: Acl::CONNECTION,
    reply: &[Shape::Ok],
    ..runs(no_cluster)
};

const CLUSTER: Command = Command {
    name: "cluster",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Manages a node of a cluster.",
    arity: Arity::at_least(2),
    ..Command::container(&[
        CLUSTER_ADDSLOTS,
        CLUSTER_ADDSLOTSRANGE,
        CLUSTER_BUMPEPOCH,
        CLUSTER_COUNT_FAILURE_REPORTS,
        CLUSTER_COUNTKEYSINSLOT,
        CLUSTER_DELSLOTS,
        CLUSTER_DELSLOTSRANGE,
        CLUSTER_FAILOVER,
        CLUSTER_FLUSHSLOTS,
        CLUSTER_FORGET,
        CLUSTER_GETKEYSINSLOT,
        CLUSTER_HELP,
        CLUSTER_INFO,
        CLUSTER_KEYSLOT,
        CLUSTER_LINKS,
        CLUSTER_MEET,
        CLUSTER_MIGRATION,
        CLUSTER_MYID,
        CLUSTER_MYSHARDID,
        CLUSTER_NODES,
        CLUSTER_REPLICAS,
        CLUSTER_REPLICATE,
        CLUSTER_RESET,
        CLUSTER_SAVECONFIG,
        CLUSTER_SET_CONFIG_EPOCH,
        CLUSTER_SETSLOT,
        CLUSTER_SHARDS,
        CLUSTER_SLAVES,
        CLUSTER_SLOT_STATS,
        CLUSTER_SLOTS,
        CLUSTER_SYNCSLOTS,
    ])
};

/// What changes the table of nodes or slots.
const CHANGES_NODES: Flags = Flags::ADMIN
    .with(Flags::STALE)
    .with(Flags::NO_ASYNC_LOADING);

const CLUSTER_ADDSLOTS: Command = Command {
    name: "addslots",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Gives hash slots to this node.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: CHANGES_NODES,
    args: &[int("slot").multiple()],
    reply: &[Shape::Ok],
    ..runs(no_cluster)
};

const CLUSTER_ADDSLOTSRANGE: Command = Command {
    name: "addslotsrange",
    group: Group::Cluster,
    since: "7.0.0",
    summary: "Gives ranges of hash slots to this node.",
    complexity: "O(N)",
    arity: Arity::at_least(4),
    flags: CHANGES_NODES,
    args: &[block("range", &[int("start-slot"), int("end-slot")]).multiple()],
    reply: &[Shape::Ok],
    ..runs(no_cluster)
};

const CLUSTER_BUMPEPOCH: Command = Command {
    name: "bumpepoch",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Raises this node's configuration epoch.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: CHANGES_NODES,
    reply: &[Shape::Simple],
    tips: &["nondeterministic_output"],
    ..runs(no_cluster)
};

const CLUSTER_COUNT_FAILURE_REPORTS: Command = Command {
    name: "count-failure-reports",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Counts the reports of failure that stand against a node.",
    complexity: "O(N)",
    arity: Arity::exactly(3),
    flags: Flags::ADMIN.with(Flags::LOADING).with(Flags::STALE),
    args: &[string("node-id")],
    reply: &[Shape::Int],
    tips: &["nondeterministic_output"],
    ..runs(no_cluster)
};

const CLUSTER_COUNTKEYSINSLOT: Command = Command {
    name: "countkeysinslot",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Counts the keys of a hash slot.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::STALE,
    args: &[int("slot")],
    reply: &[Shape::Int],
    ..runs(no_cluster)
};

const CLUSTER_DELSLOTS: Command = Command {
    name: "delslots",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Takes hash slots from this node.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: CHANGES_NODES,
    args: &[int("slot").multiple()],
    reply: &[Shape::Ok],
    ..runs(no_cluster)
};

const CLUSTER_DELSLOTSRANGE: Command = Command {
    name: "delslotsrange",
    group: Group::Cluster,
    since: "7.0.0",
    summary: "Takes ranges of hash slots from this node.",
    complexity: "O(N)",
    arity: Arity::at_least(4),
    flags: CHANGES_NODES,
    args: &[block("range", &[int("start-slot"), int("end-slot")]).multiple()],
    reply: &[Shape::Ok],
    ..runs(no_cluster)
};

const CLUSTER_FAILOVER: Command = Command {
    name: "failover",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Makes a replica the primary of its shard.",
    complexity: "O(1)",
    arity: Arity::at_least(2),
    flags: CHANGES_NODES,
    args: &[one_of("options", &[flag("FORCE"), flag("TAKEOVER")]).optional()],
    reply: &[Shape::Ok],
    ..runs(no_cluster)
};

const CLUSTER_FLUSHSLOTS: Command = Command {
    name: "flushslots",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Takes all hash slots from this node.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: CHANGES_NODES,
    reply: &[Shape::Ok],
    ..runs(no_cluster)
};

const CLUSTER_FORGET: Command = Command {
    name: "forget",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Removes a node from the table of nodes.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: CHANGES_NODES,
    args: &[string("node-id")],
    reply: &[Shape::Ok],
    ..runs(no_cluster)
};

const CLUSTER_GETKEYSINSLOT: Command = Command {
    name: "getkeysinslot",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Returns keys of a hash slot.",
    complexity: "O(N)",
    arity: Arity::exactly(4),
    flags: Flags::STALE,
    args: &[int("slot"), int("count")],
    reply: &[Shape::Array],
    tips: &["nondeterministic_output"],
    ..runs(no_cluster)
};

const CLUSTER_HELP: Command = Command {
    name: "help",
    group: Group::Cluster,
    since: "5.0.0",
    summary: "Lists the subcommands.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    reply: &[Shape::Array],
    ..runs(no_cluster)
};

const CLUSTER_INFO: Command = Command {
    name: "info",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Describes how the cluster is.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    reply: &[Shape::Bulk],
    tips: &["nondeterministic_output"],
    ..runs(no_cluster)
};

const CLUSTER_KEYSLOT: Command = Command {
    name: "keyslot",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Returns the hash slot of a key.",
    complexity: "O(N)",
    arity: Arity::exactly(3),
    flags: Flags::LOADING.with(Flags::STALE),
    args: &[string("key")],
    reply: &[Shape::Int],
    ..runs(no_cluster)
};

const CLUSTER_LINKS: Command = Command {
    name: "links",
    group: Group::Cluster,
    since: "7.0.0",
    summary: "Lists the connections between this node and its peers.",
    complexity: "O(N)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    reply: &[Shape::Array],
    tips: &["nondeterministic_output"],
    ..runs(no_cluster)
};

const CLUSTER_MEET: Command = Command {
    name: "meet",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Introduces this node to another.",
    complexity: "O(1)",
    arity: Arity::at_least(4),
    flags: CHANGES_NODES,
    args: &[
        string("ip"),
        int("port"),
        int("cluster-bus-port").since("4.0.0").optional(),
    ],
    reply: &[Shape::Ok],
    history: &[("4.0.0", "Takes the port of the cluster bus.")],
    ..runs(no_cluster)
};

const CLUSTER_MIGRATION: Command = Command {
    name: "migration",
    group: Group::Cluster,
    since: "8.4.0",
    summary: "Starts, stops and shows the migration of hash slots.",
    complexity: "O(N)",
    arity: Arity::at_least(4),
    flags: CHANGES_NODES,
    args: &[one_of(
        "subcommand",
        &[
            block("import", &[int("start-slot"), int("end-slot")])
                .token("IMPORT")
                .multiple(),
            one_of("cancel", &[string("task-id").token("ID"), flag("ALL")]).token("CANCEL"),
            one_of(
                "status",
                &[
                    string("task-id").token("ID").optional(),
                    flag("ALL").optional(),
                ],
            )
            .token("STATUS"),
        ],
    )],
    reply: &[Shape::Any],
    ..runs(no_cluster)
};

const CLUSTER_MYID: Command = Command {
    name: "myid",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Returns this node's identifier.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    reply: &[Shape::Bulk],
    ..runs(no_cluster)
};

const CLUSTER_MYSHARDID: Command = Command {
    name: "myshardid",
    group: Group::Cluster,
    since: "7.2.0",
    summary: "Returns the identifier of this node's shard.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    reply: &[Shape::Bulk],
    tips: &["nondeterministic_output"],
    ..runs(no_cluster)
};

const CLUSTER_NODES: Command = Command {
    name: "nodes",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Returns the configuration of the cluster as this node knows it.",
    complexity: "O(N)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    reply: &[Shape::Bulk],
    tips: &["nondeterministic_output"],
    ..runs(no_cluster)
};

const CLUSTER_REPLICAS: Command = Command {
    name: "replicas",
    group: Group::Cluster,
    since: "5.0.0",
    summary: "Lists the replicas of a primary.",
    complexity: "O(N)",
    arity: Arity::exactly(3),
    flags: Flags::ADMIN.with(Flags::LOADING).with(Flags::STALE),
    args: &[string("node-id")],
    reply: &[Shape::Array],
    tips: &["nondeterministic_output"],
    ..runs(no_cluster)
};

const CLUSTER_REPLICATE: Command = Command {
    name: "replicate",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Makes this node the replica of a primary.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: CHANGES_NODES,
    args: &[string("node-id")],
    reply: &[Shape::Ok],
    ..runs(no_cluster)
};

const CLUSTER_RESET: Command = Command {
    name: "reset",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Makes this node forget the cluster.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::ADMIN.with(Flags::NOSCRIPT).with(Flags::STALE),
    args: &[one_of("reset-type", &[flag("HARD"), flag("SOFT")]).optional()],
    reply: &[Shape::Ok],
    ..runs(no_cluster)
};

const CLUSTER_SAVECONFIG: Command = Command {
    name: "saveconfig",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Writes this node's configuration to disk.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: CHANGES_NODES,
    reply: &[Shape::Ok],
    ..runs(no_cluster)
};

const CLUSTER_SET_CONFIG_EPOCH: Command = Command {
    name: "set-config-epoch",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Sets the configuration epoch of a new node.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: CHANGES_NODES,
    args: &[int("config-epoch")],
    reply: &[Shape::Ok],
    ..runs(no_cluster)
};

const CLUSTER_SETSLOT: Command = Command {
    name: "setslot",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Binds a hash slot to a node, or moves it.",
    complexity: "O(1)",
    arity: Arity::at_least(4),
    flags: CHANGES_NODES,
    args: &[
        int("slot"),
        one_of(
            "subcommand",
            &[
                string("importing").shown("node-id").token("IMPORTING"),
                string("migrating").shown("node-id").token("MIGRATING"),
                string("node").shown("node-id").token("NODE"),
                flag("STABLE"),
            ],
        ),
    ],
    reply: &[Shape::Ok],
    ..runs(no_cluster)
};

const CLUSTER_SHARDS: Command = Command {
    name: "shards",
    group: Group::Cluster,
    since: "7.0.0",
    summary: "Lists the shards of the cluster with their nodes and slots.",
    complexity: "O(N)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    reply: &[Shape::Array],
    tips: &["nondeterministic_output"],
    ..runs(no_cluster)
};

const CLUSTER_SLAVES: Command = Command {
    name: "slaves",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Lists the replicas of a primary.",
    complexity: "O(N)",
    arity: Arity::exactly(3),
    flags: Flags::ADMIN.with(Flags::LOADING).with(Flags::STALE),
    args: &[string("node-id")],
    reply: &[Shape::Array],
    tips: &["nondeterministic_output"],
    deprecated: Some(("5.0.0", "`CLUSTER REPLICAS`")),
    ..runs(no_cluster)
};

const CLUSTER_SLOT_STATS: Command = Command {
    name: "slot-stats",
    group: Group::Cluster,
    since: "8.2.0",
    summary: "Returns how hash slots are used.",
    complexity: "O(N)",
    arity: Arity::at_least(4),
    flags: Flags::LOADING.with(Flags::STALE),
    args: &[one_of(
        "filter",
        &[
            block("slotsrange", &[int("start-slot"), int("end-slot")]).token("SLOTSRANGE"),
            block(
                "orderby",
                &[
                    string("metric"),
                    int("limit").token("LIMIT").optional(),
                    one_of("order", &[flag("ASC"), flag("DESC")]).optional(),
                ],
            )
            .token("ORDERBY"),
        ],
    )],
    reply: &[Shape::Array],
    tips: &["nondeterministic_output", "request_policy:all_shards"],
    ..runs(no_cluster)
};

const CLUSTER_SLOTS: Command = Command {
    name: "slots",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Lists ranges of hash slots with the nodes that serve them.",
    complexity: "O(N)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    reply: &[Shape::Array],
    tips: &["nondeterministic_output"],
    history: &[
        ("4.0.0", "Says the identifiers of nodes."),
        ("7.0.0", "Says more of how a node is reached."),
    ],
    deprecated: Some(("7.0.0", "`CLUSTER SHARDS`")),
    ..runs(no_cluster)
};

const CLUSTER_SYNCSLOTS: Command = Command {
    name: "syncslots",
    group: Group::Cluster,
    since: "8.4.0",
    summary: "Takes part in the migration of hash slots, between nodes.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: CHANGES_NODES,
    args: &[one_of(
        "subcommand",
        &[
            block(
                "sync",
                &[
                    string("task-id"),
                    block("slot-range", &[int("start-slot"), int("end-slot")]).multiple(),
                ],
            )
            .token("SYNC"),
            string("task-id").token("RDBCHANNEL"),
            flag("SNAPSHOT-EOF"),
            flag("STREAM-EOF"),
            block("ack", &[string("state"), int("offset")]).token("ACK"),
            string("error").token("FAIL"),
            block(
                "conf",
                &[string("option").multiple(), string("value").multiple()],
            )
            .token("CONF"),
        ],
    )],
    reply: &[Shape::Any],
    tips: &["nondeterministic_output"],
    ..runs(no_cluster)
};

const READONLY: Command = Command {
    name: "readonly",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Lets this client read from a replica.",
    complexity: "O(1)",
    arity: Arity::exactly(1),
    flags: Flags::LOADING.with(Flags::STALE).with(Flags::FAST),
    acl: Acl::CONNECTION,
    reply: &[Shape::Ok],
    ..runs(no_cluster)
};

const READWRITE: Command = Command {
    name: "readwrite",
    group: Group::Cluster,
    since: "3.0.0",
    summary: "Takes back READONLY.",
    complexity: "O(1)",
    arity: Arity::exactly(1),
    flags: Flags::LOADING.with(Flags::STALE).with(Flags::FAST),
    acl: Acl::CONNECTION,
    reply: &[Shape::Ok],
    ..runs(no_cluster)
};
