package org.sqlcached.client;

import java.util.List;
import java.util.Map;

/**
 * The result of a statement.
 *
 * @param rows the rows, each by the names of its columns. Numbers are Long or Double, BYTEA is byte[]
 * @param count how many rows were returned or changed
 */
public record Result(List<Map<String, Object>> rows, long count) {
}
