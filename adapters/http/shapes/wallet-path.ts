import { z } from 'zod';
import type { TenantId } from '../../../domain/shared/ids.ts';

/** The first segment of the paths that wallets call. */
export const TenantPath = z.object({
  tenant: z
    .string()
    .max(63)
    .transform((id) => id as TenantId),
});

/** A JSON object that is described elsewhere. */
export const Document = z.record(z.string(), z.unknown());
