import { object, strictObject, z } from 'zod';
import { ConfigurationId, Country, Line, Reference, textUpTo } from '../shared/bounds.ts';
import { defined } from '../shared/defined.ts';
import { ContactUri, WebAddress } from '../shared/web-address.ts';
import { Language, TrustListData } from './scheme-information.ts';

export const MAX_ENTITIES = 100;

const ENTITY_STATUSES = ['notified', 'withdrawn'] as const;

const Pem = textUpTo(20_000);

const EntityInfo = strictObject({
  name: Line,
  lang: Language.optional().describe('Language of these texts. Default: `en`'),
  uri: WebAddress.optional().describe('A page about the entity. Default: that of the tenant'),
  country: Country.optional().describe('Default: that of the tenant for its own entities, otherwise that of the certificate'),
  locality: Line.optional(),
  postalCode: Line.optional(),
  streetAddress: Line.optional().describe(
    'With the rest of the address, where none of it is stated, that of the tenant, for its own entities, or of the certificate',
  ),
  contactUri: ContactUri.optional(),
}).meta({ id: 'TrustedEntityInfo' });
export type EntityInfo = z.infer<typeof EntityInfo>;

/** Status of an entity in lists of public bodies (TS 119 602 annex H). */
const statusProperties = {
  status: z.enum(ENTITY_STATUSES).optional().describe('Only in a list of public bodies (`EUPubEAAProvidersList`). Default: `notified`'),
  statusStartingTime: z.iso.datetime({ precision: 0 }).optional().describe('Start of the status. Default: the time of the write'),
};

/** An issuer of this tenant. Its trust anchor is listed: the CA of the key chain, if there is one. */
const InternalEntity = strictObject({
  type: z.literal('internal'),
  issuerKeyChainId: Reference,
  revocationKeyChainId: Reference.optional().describe('Absent: the entity lists no revocation service'),
  info: EntityInfo,
  ...statusProperties,
});

/** An external issuer. The text may contain a chain; its first certificate is listed. */
const ExternalEntity = strictObject({
  type: z.literal('external'),
  issuerCertPem: Pem,
  revocationCertPem: Pem.optional().describe('Absent: the entity lists no revocation service'),
  info: EntityInfo,
  ...statusProperties,
});

export const TrustListEntity = z.discriminatedUnion('type', [InternalEntity, ExternalEntity]).meta({ id: 'TrustListEntity' });
export type TrustListEntity = z.infer<typeof TrustListEntity>;

const Entities = z.array(TrustListEntity).max(MAX_ENTITIES);
const Description = z.string().max(1000).nullish();

export const TrustListReplacement = object({
  id: ConfigurationId.optional(),
  description: Description,
  keyChainId: Reference.nullish().describe('Key chain that signs the list. Default: the first usable one for `trustList`'),
  entities: Entities,
  entityConfig: z.never('only used in responses; write entities').optional().describe('Only in responses; write `entities`'),
  data: TrustListData.nullish().describe('Scheme information of the list, in the structure of the document'),
}).meta({ id: 'TrustListInput' });
export type TrustListReplacement = z.infer<typeof TrustListReplacement>;

/** Properties replace those of the stored list; null resets to the default. */
export const TrustListUpdate = TrustListReplacement.extend({ entities: Entities.optional() }).meta({ id: 'TrustListUpdate' });
export type TrustListUpdate = z.infer<typeof TrustListUpdate>;

export type TrustListConfiguration = {
  readonly id: string;
  readonly description?: string;
  /** Absent: the oldest usable key chain signs. */
  readonly keyChainId?: string;
  readonly entities: readonly TrustListEntity[];
  readonly data?: TrustListData;
};

/** @param input of an administrator, or a stored list. */
export function configurationOf(
  id: string,
  input: Omit<TrustListReplacement, 'entities'> & Pick<TrustListConfiguration, 'entities'>,
): TrustListConfiguration {
  const { description, keyChainId, entities, data } = input;
  const presentValues = { description: description ?? undefined, keyChainId: keyChainId ?? undefined };
  return { id, ...defined({ ...presentValues, data: data ?? undefined }), entities };
}
