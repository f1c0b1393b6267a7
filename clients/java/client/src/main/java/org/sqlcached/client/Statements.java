package org.sqlcached.client;

import java.util.Set;
import java.util.function.Function;

/** Requests about a table at one daemon. The table is made if it is not there, also if somebody has dropped it. */
final class Statements {
    /** Errors of a table, or of a name in it, that is not there. */
    private static final Set<String> OF_NO_TABLE = Set.of("42P01");

    private final Client client;
    private final Definition definition;

    Statements(Client client, Definition definition) {
        this.client = client;
        this.definition = definition;
    }

    Definition definition() {
        return definition;
    }

    OnFailure onFailure() {
        return client.options().onFailure();
    }

    <T> T call(boolean again, Function<Connection, T> work) {
        return client.run(again, connection -> {
            definition.ensure(connection);
            return work.apply(connection);
        });
    }

    Result run(boolean again, String text, Object... parameters) {
        return call(again, connection -> {
            try {
                return result(connection, text, parameters);
            } catch (StatementException why) {
                if (!OF_NO_TABLE.contains(why.sqlState())) {
                    throw why;
                }
            }
            connection.forget(definition);
            definition.ensure(connection);
            return result(connection, text, parameters);
        });
    }

    private static Result result(Connection connection, String text, Object... parameters) {
        Protocol.statement(connection, text, parameters);
        return Protocol.result(connection);
    }

    @Override
    public String toString() {
        return client.options() + ": table " + definition.name();
    }
}
