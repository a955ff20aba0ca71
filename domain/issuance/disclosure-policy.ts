import { z } from 'zod';
import { listUpTo, textUpTo } from '../shared/bounds.ts';

const Name = textUpTo(2048);
const Names = listUpTo(Name, 500);

const DcqlObject = z.record(z.string(), z.json()).meta({ id: 'DcqlObject' });

const Attestation = z
  .strictObject({
    claims: z.array(DcqlObject).max(500).optional().describe('DCQL claims queries'),
    credentials: listUpTo(DcqlObject, 100).describe(
      'DCQL credential queries for what the relying party presents',
    ),
    credential_sets: z.array(DcqlObject).max(100).optional().describe('DCQL credential sets over these'),
  })
  .meta({ id: 'AttestationOfRelyingParty' });

/** Whom a wallet may show the credential to; it travels in the issuer's metadata. */
export const DisclosurePolicy = z
  .discriminatedUnion('policy', [
    z.strictObject({ policy: z.literal('none').describe('To anybody') }),
    z.strictObject({
      policy: z.literal('allowList').describe('To the relying parties that are named'),
      values: Names.describe(
        'Relying parties, by the names that wallets find in their access certificates; at least one',
      ),
    }),
    z.strictObject({
      policy: z
        .literal('rootOfTrust')
        .describe('To relying parties whose certificates one of these vouches for'),
      values: z.union([Name, Names]).describe('Names of the authorities, at least one'),
    }),
    z.strictObject({
      policy: z.literal('attestationBased').describe('To relying parties that present an attestation'),
      values: listUpTo(Attestation, 100).describe('Any of these is enough'),
    }),
  ])
  .meta({ id: 'DisclosurePolicy' });
export type DisclosurePolicy = z.infer<typeof DisclosurePolicy>;
