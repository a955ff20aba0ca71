export const statements = [
  // No key is at hand to seal what was written before, and nobody but the operator was ever shown it.
  'update deferred_transactions set error_message = null where error_message is not null;',
];
