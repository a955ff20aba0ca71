import { object, z } from 'zod';
import { REFUSAL_REASONS } from '../../../domain/shared/refusal.ts';

const Values = z.record(z.string(), z.unknown());

const Issuer = object({
  subject: z.string().describe('Name in the certificate of the signer (RFC 4514)'),
  fingerprint: z.string().describe('SHA-256 of that certificate, base64url'),
  anchor: z.string().describe('SHA-256 of its trust anchor, base64url'),
  listed: z
    .array(object({ entity: z.string(), list: z.string(), sequenceNumber: z.number() }))
    .optional()
    .describe('Addresses of trust lists with the anchor; absent for a configured anchor'),
}).meta({ id: 'PresentedIssuer', description: 'Signer of a credential' });

export const Presented = object({
  id: z.string().describe('Id of the credential query'),
  values: z
    .union([Values, z.array(Values)])
    .optional()
    .describe('Verified claims; an array for a query with `multiple`'),
  issuer: z
    .union([Issuer, z.array(Issuer)])
    .optional()
    .describe('Signer; an array for an array of `values`'),
  authentication: object({
    jti: z.string().describe('The authentication code'),
    amr: z.array(z.record(z.string(), z.string())).describe('Factors by category'),
  })
    .optional()
    .describe('User authentication by the wallet, beside a confirmed transaction of TS12 (docs/reference/verifying.md)'),
  error: z
    .enum([...REFUSAL_REASONS, 'missing', 'response_refused'])
    .optional()
    .describe(
      'Reason for absent `values`, see docs/reference/errors.md. `missing`: no presentation; `response_refused`: ' +
        'it was valid, but another part of the response was not',
    ),
}).meta({ id: 'PresentedCredential', description: 'Result of one credential query' });
