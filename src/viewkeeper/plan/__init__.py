"""From a view's query to the steps of its refresh. Pure: values in, values out."""
