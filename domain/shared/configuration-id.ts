import { z } from 'zod';

/** The name of a configuration; of a credential, also the `credential_configuration_id` of wallets and offers. */
export const ConfigurationId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$/, 'letters, digits and . _ ~ -, at most 128');
