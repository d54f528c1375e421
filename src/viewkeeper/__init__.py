"""viewkeeper: incremental materialized views for Apache Spark."""
