/** Spring's caches and sessions in sqlcached, with Spring Boot's auto-configuration. */
package org.sqlcached.spring;
