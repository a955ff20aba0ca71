import { z } from 'zod';

const Name = z.string().min(1).max(2048);
const Names = z.array(Name).min(1).max(500);

/** Whom a wallet may show the credential to; it travels in the issuer's metadata. */
export const DisclosurePolicy = z
  .discriminatedUnion('policy', [
    z.strictObject({ policy: z.literal('none') }),
    z.strictObject({ policy: z.literal('allowList'), values: Names }),
    z.strictObject({ policy: z.literal('rootOfTrust'), values: z.union([Name, Names]) }),
    z.strictObject({
      policy: z.literal('attestationBased'),
      values: z
        .array(
          z.strictObject({
            claims: z.array(z.record(z.string(), z.json())).max(500).optional(),
            credentials: z.array(z.record(z.string(), z.json())).min(1).max(100),
            credential_sets: z.array(z.record(z.string(), z.json())).max(100).optional(),
          }),
        )
        .min(1)
        .max(100),
    }),
  ])
  .meta({ id: 'DisclosurePolicy' });
export type DisclosurePolicy = z.infer<typeof DisclosurePolicy>;
