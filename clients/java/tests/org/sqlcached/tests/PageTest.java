package org.sqlcached.tests;

import org.junit.After;
import org.junit.Before;
import org.sqlcached.client.Client;
import org.sqlcached.client.Definition;
import org.sqlcached.client.Loading;
import org.sqlcached.client.Table;
import org.sqlcached.client.Values;

/** Tests of one client and its table of pages, which is empty before each, at a daemon that all of a class share. */
abstract class PageTest extends DaemonTest {
    Client client;
    Table table;
    Loading rows;

    @Before
    public void open() {
        client = daemon.client();
        table = new Table(client, new Definition("page"));
        rows = new Loading(table, new Values("org.sqlcached.tests.**"));
        table.clear();
    }

    @After
    public void close() {
        client.close();
    }
}
