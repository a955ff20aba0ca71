import { z } from 'zod';
import { KEY_USAGES } from '../../domain/keys/key-chain.ts';
import { SIGNING_ALGORITHMS } from '../../domain/shared/jwk.ts';

/** Segments of `/key-chain/…` that are no ids. */
const RESERVED_IDS = new Set(['providers', 'import']);

const Id = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$/, 'letters, digits and . _ ~ -, at most 128')
  .refine((id) => !RESERVED_IDS.has(id), 'this name is an address of the service itself');
const Usage = z.enum(KEY_USAGES);
const Usages = z.array(Usage).min(1).max(KEY_USAGES.length);
const Description = z.string().max(1000);
const SubjectName = z.string().trim().min(1).max(64);

/** A new key chain: an internal CA and a leaf that it certifies. */
export const KeyChainCreation = z
  .object({
    id: Id.optional(),
    description: Description.nullable().optional(),
    usageType: Usage.optional().describe('One usage; `usages` takes several'),
    usages: Usages.optional(),
    algorithm: z.enum(SIGNING_ALGORITHMS).optional().describe('ES256 unless stated'),
    kmsProvider: z.string().min(1).max(128).optional().describe('The default provider unless stated'),
    subjectName: SubjectName.optional().describe(
      'Common name of the leaf; the name of the tenant unless stated',
    ),
    country: z
      .string()
      .regex(/^[A-Z]{2}$/, 'two capital letters (ISO 3166-1)')
      .optional()
      .describe('Of the issuer, in its certificates; readers of driving licences demand it'),
    organization: SubjectName.optional().describe('Of the issuer, in its certificates'),
    certValidityDays: z.number().int().min(1).max(3653).optional().describe('Days; 365 unless stated'),
    rotationEnabled: z.literal(false, 'rotation is not supported by this release').optional(),
  })
  .refine((body) => (body.usageType === undefined) !== (body.usages === undefined), {
    path: ['usageType'],
    message: 'give either usageType or usages',
  })
  .meta({ id: 'KeyChainCreation' });
export type KeyChainCreation = z.infer<typeof KeyChainCreation>;

export const KeyChainUpdate = z
  .object({
    description: Description.nullable().optional(),
    usages: Usages.optional(),
    rotationEnabled: z.literal(false, 'rotation is not supported by this release').optional(),
  })
  .meta({ id: 'KeyChainUpdate' });
export type KeyChainUpdate = z.infer<typeof KeyChainUpdate>;

/** Another certificate for a key that exists. */
export const CertificateCreation = z
  .object({
    id: Id.optional(),
    keyId: z.string().min(1).max(128).describe('The key: id of any certificate or key chain that has it'),
    certUsageTypes: Usages,
    crt: z
      .union([z.string().min(1).max(50_000), z.array(z.string().min(1).max(20_000)).min(1).max(6)])
      .optional()
      .describe('PEM, leaf first. Absent: the internal CA of the key makes a certificate'),
    subjectName: SubjectName.optional().describe('Common name; the name of the tenant unless stated'),
    description: Description.nullable().optional(),
  })
  .meta({ id: 'CertificateCreation' });
export type CertificateCreation = z.infer<typeof CertificateCreation>;
