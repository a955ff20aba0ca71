import { z } from 'zod';

/** A tenant as far as things of its own name it. */
export const TenantReference = z
  .object({ id: z.string(), name: z.string() })
  .meta({ id: 'TenantName', description: 'The tenant that this belongs to' });
