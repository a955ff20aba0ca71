export const statements = [
  // No key is at hand to seal what was written before, and nobody but the operator was ever shown it. What is
  // erased is overwritten, which SQLite does not do by itself.
  'pragma secure_delete = on;',
  'update deferred_transactions set error_message = null where error_message is not null;',
  'pragma secure_delete = off;',
];
