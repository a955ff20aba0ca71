import { object, z } from 'zod';
import { ConfigurationId, listUpTo, Reference, textUpTo, wholeNumber } from '../shared/bounds.ts';
import { strictInput } from '../shared/input-object.ts';
import { SIGNING_ALGORITHMS } from '../shared/jwk.ts';
import { HOST } from './host-name.ts';
import { KEY_USAGES } from './key-chain.ts';

/** Path segments of `/key-chain/…` that are not ids. */
const RESERVED_IDS = new Set(['providers', 'import']);

const Id = ConfigurationId.refine((id) => !RESERVED_IDS.has(id), 'this name is reserved for an address of the service');
const Usage = z.enum(KEY_USAGES);
const Usages = listUpTo(Usage, KEY_USAGES.length);
/** An empty list is accepted only for a key without usages; `UpdateKeyChain` checks this. */
const RetainedUsages = 'At least one, unless the key has no usage';
const Description = z.string().max(1000);
const SubjectName = z.string().trim().min(1).max(64);

const Days = wholeNumber(1, 3653);
const Pem = z
  .union([textUpTo(50_000), listUpTo(textUpTo(20_000), 6)])
  .describe('PEM, leaf first, each certified by the next; the root is optional');
const PrivateKey = z
  .union([textUpTo(20_000), z.record(z.string().max(100), z.json())])
  .describe('Private key on P-256, P-384, P-521 or Ed25519: PEM (PKCS#8 or SEC1) or JWK. It is never shown again');

const usages = {
  usageType: Usage.optional().describe(
    'One usage; `usages` accepts several. `access` requires the role `presentation:manage`, all others `issuance:manage`',
  ),
  usages: Usages.optional(),
};
/** Refinement: exactly one of the two usage properties. */
type Usable = { readonly usageType?: unknown; readonly usages?: unknown };
export const ONE_OF_USAGES: [(body: Usable) => boolean, { path: string[]; message: string }] = [
  ({ usageType, usages }) => (usageType === undefined) !== (usages === undefined),
  { path: ['usageType'], message: 'set either usageType or usages' },
];
/** The same rule for the API document. */
const EITHER_USAGE = { allOf: [{ oneOf: [{ required: ['usageType'] }, { required: ['usages'] }] }] };
const rotation = {
  rotationEnabled: z.boolean().optional().describe('True if the key is rotated by interval'),
  rotationIntervalDays: Days.optional().describe(
    'Default: 90. 24 former keys are kept, so certValidityDays are at most 24 intervals: with 365 days the shortest interval is 16 days',
  ),
  certValidityDays: Days.optional().describe('Validity of certificates of the internal authority. Default: 365'),
};
const subject = {
  subjectName: SubjectName.optional().describe('Common name. Default: the name of the tenant'),
  country: z
    .string()
    .regex(/^[A-Z]{2}$/, 'two capital letters (ISO 3166-1)')
    .optional()
    .describe('Country of the issuer in its certificates; readers of driving licences require it. Default: that of the tenant'),
  organization: SubjectName.optional().describe(
    'Organization of the issuer in its certificates. Default: that of the tenant, otherwise its name',
  ),
};
const creation = {
  id: Id.optional(),
  description: Description.nullish(),
  kmsProvider: Reference.optional().describe(
    'Provider that creates its key, one of `GET /key-chain/providers`. Default: that of the tenant',
  ),
};
const RootKeyChainId = Reference.optional().describe(
  'A key chain whose internal authority certifies this one, too: for `access` one for `access`, for other usages one for ' +
    'other usages. Default: its own authority',
);
const Algorithm = z.enum(SIGNING_ALGORITHMS).optional().describe('Default: ES256');

export const KeyChainCreation = object({
  ...creation,
  ...usages,
  algorithm: Algorithm,
  ...subject,
  ...rotation,
  rootKeyChainId: RootKeyChainId,
  selfSigned: z.boolean().optional().describe('Self-signed: only for trust lists, since wallets reject everything else under such a key'),
})
  .refine(...ONE_OF_USAGES)
  .meta({ id: 'KeyChainCreation', ...EITHER_USAGE });
export type KeyChainCreation = z.infer<typeof KeyChainCreation>;

/** A key that was created elsewhere. */
export const KeyChainImport = object({
  ...creation,
  ...usages,
  key: PrivateKey,
  certificates: Pem.optional().describe('PEM, leaf first. Absent: an internal authority certifies the key'),
  ...subject,
  ...rotation,
  rootKeyChainId: RootKeyChainId,
})
  .refine(...ONE_OF_USAGES)
  .meta({ id: 'KeyChainImport', ...EITHER_USAGE });
export type KeyChainImport = z.infer<typeof KeyChainImport>;

export const KeyChainUpdate = object({
  description: Description.nullish(),
  usages: z.array(Usage).max(KEY_USAGES.length).meta({ minItems: 1 }).optional().describe(RetainedUsages),
  certificates: Pem.optional().describe('Certificates of an external authority for the active key; they replace the present ones'),
  ...rotation,
}).meta({ id: 'KeyChainUpdate' });
export type KeyChainUpdate = z.infer<typeof KeyChainUpdate>;

export const KeyChainRotation = object({
  provider: creation.kmsProvider.describe(
    'Provider of this and all later keys, one of `GET /key-chain/providers`. Default: the present provider',
  ),
  kmsProvider: creation.kmsProvider.describe('Alias of `provider`'),
  compromised: z
    .boolean()
    .optional()
    .describe(
      'An attacker may have the present key: the public key is removed from all key chains of the tenant, and ' +
        'its certificates of internal authorities are revoked, so that nothing signed with it is valid. ' +
        'A key chain that cannot be rotated signs nothing until it is replaced',
    ),
})
  .refine(({ provider, kmsProvider }) => provider === undefined || kmsProvider === undefined || provider === kmsProvider, {
    path: ['kmsProvider'],
    message: 'set either provider or kmsProvider',
  })
  .meta({ id: 'KeyChainRotation', not: { required: ['provider', 'kmsProvider'] } });
export type KeyChainRotation = z.infer<typeof KeyChainRotation>;

export const CertificateSigningRequest = object({
  ...subject,
  subjectName: SubjectName.optional().describe('Common name. Default: that of the present certificate'),
  dnsNames: listUpTo(z.string().max(253).regex(HOST, 'a host name'), 20).optional().describe('Host names. Default: that of `PUBLIC_URL`'),
}).meta({ id: 'CertificateSigningRequest' });
export type CertificateSigningRequest = z.infer<typeof CertificateSigningRequest>;

/** A key for which no certificate subject is chosen, in the vocabulary of certificates. */
export const KeyCreation = object({
  ...creation,
  key: PrivateKey.optional(),
  usage: z.literal('sign').optional(),
  usages: Usages.optional().describe('Default: none; POST /certs issues certificates for usages'),
  algorithm: Algorithm,
  ...subject,
})
  .refine((body) => body.key === undefined || body.algorithm === undefined, {
    path: ['algorithm'],
    message: 'an imported key determines its algorithm',
  })
  .meta({ id: 'KeyCreation', allOf: [{ not: { required: ['key', 'algorithm'] } }] });
export type KeyCreation = z.infer<typeof KeyCreation>;

export const CertificateCreation = object({
  id: Id.optional(),
  keyId: Reference.describe('Id of any certificate or key chain of the key'),
  certUsageTypes: Usages,
  crt: Pem.optional().describe('PEM, leaf first. Absent: the internal CA of the key issues a certificate'),
  subjectName: subject.subjectName,
  description: Description.nullish(),
}).meta({ id: 'CertificateCreation' });
export type CertificateCreation = z.infer<typeof CertificateCreation>;

/** A usage as in responses, so that a response can be sent back. */
const UsageInResponse = strictInput({
  usage: Usage,
  tenantId: z.string().optional(),
  certId: z.string().optional(),
  cert: z.looseObject({ id: z.string() }).optional(),
});

export const CertificateUpdate = object({
  description: Description.nullish(),
  certUsageTypes: Usages.optional(),
  usages: z
    .array(z.union([Usage, UsageInResponse]))
    .max(KEY_USAGES.length)
    .meta({ minItems: 1 })
    .optional()
    .describe(`Another name of \`certUsageTypes\`, also as answers show them. ${RetainedUsages}`),
  crt: Pem.optional().describe('Certificates of an external authority for the key; they replace the present ones'),
})
  .refine((body) => body.certUsageTypes === undefined || body.usages === undefined, {
    path: ['usages'],
    message: 'set either certUsageTypes or usages',
  })
  .meta({ id: 'CertificateUpdate', allOf: [{ not: { required: ['certUsageTypes', 'usages'] } }] });
export type CertificateUpdate = z.infer<typeof CertificateUpdate>;
