/** JCache (JSR 107) in sqlcached. */
package org.sqlcached.jcache;
