<?php

/** A page without decoration: each post, its mark, and how many statements the database was sent. */

while (have_posts()) {
    the_post();
    echo '<h1>', esc_html(get_the_title()), '</h1><p>', esc_html((string) get_post_meta(get_the_ID(), 'mark', true)), "</p>\n";
}
echo '<i>', (int) $GLOBALS['wpdb']->num_queries, "</i>\n";
