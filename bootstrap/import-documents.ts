import { z } from 'zod';
import type { DocumentKind, FolderDocument, FolderFault } from '../config/import/folder-document.ts';
import { mapTexts } from '../config/import/placeholders.ts';
import { ClientCreation } from '../domain/clients/client.ts';
import { CredentialConfigurationBody } from '../domain/issuance/configuration.ts';
import { IssuanceConfigurationBody } from '../domain/issuance/issuance-configuration.ts';
import { KEY_USAGES } from '../domain/keys/key-chain.ts';
import { KeyChainCreation, KeyChainImport } from '../domain/keys/key-chain-input.ts';
import { RegistrarConfigurationBody } from '../domain/registrar/registrar-configuration.ts';
import { type JsonObject, parseJsonObject } from '../domain/shared/json.ts';
import { readWritten } from '../domain/shared/read-written.ts';
import { HIDDEN } from '../domain/shared/secrets.ts';
import { TenantCreation, TenantUpdate } from '../domain/tenants/tenant.ts';
import { TrustListReplacement } from '../domain/trust-lists/list-configuration.ts';
import { PresentationConfigurationBody } from '../domain/verification/configuration.ts';

/** What a tenant is created with, and whether it is suspended. */
const TenantDocument = z.object({ ...TenantCreation.shape, status: TenantUpdate.shape.status });

/** A key may be without any usage, as `POST /key` makes them. */
const usages = { usages: z.array(z.enum(KEY_USAGES)).max(KEY_USAGES.length).optional() };
const isOneOfUsages = (body: { usageType?: unknown; usages?: unknown }) =>
  (body.usageType === undefined) !== (body.usages === undefined);
const oneOfUsages = { path: ['usageType'], message: 'give either usageType or usages' };
const NewKeyChain = z.object({ ...KeyChainCreation.shape, ...usages }).refine(isOneOfUsages, oneOfUsages);
const BroughtKeyChain = z.object({ ...KeyChainImport.shape, ...usages }).refine(isOneOfUsages, oneOfUsages);

const SCHEMAS = {
  tenant: TenantDocument,
  'key-chain': NewKeyChain,
  registrar: RegistrarConfigurationBody,
  presentation: PresentationConfigurationBody,
  'trust-list': TrustListReplacement,
  issuance: IssuanceConfigurationBody,
  credential: CredentialConfigurationBody,
  client: ClientCreation,
} as const satisfies Record<DocumentKind, z.ZodType>;

/** The members of each kind, in the order in which they are described. */
export const MEMBERS: Readonly<Record<DocumentKind, readonly string[]>> = Object.fromEntries(
  Object.entries(SCHEMAS).map(([kind, schema]) => [kind, Object.keys(schema.shape)]),
) as Record<DocumentKind, string[]>;

/** Members that are secrets, dotted, by kind, and what they are called in the names of variables. */
export const SECRETS: Partial<Readonly<Record<DocumentKind, Readonly<Record<string, string>>>>> = {
  registrar: { clientSecret: 'CLIENT_SECRET', password: 'PASSWORD' },
  presentation: { 'webhook.auth.config.value': 'WEBHOOK_KEY' },
  issuance: { 'chainedAs.upstream.clientSecret': 'CLIENT_SECRET' },
  credential: {
    'claimsWebhook.auth.config.value': 'CLAIMS_WEBHOOK_KEY',
    'notificationWebhook.auth.config.value': 'NOTIFICATION_WEBHOOK_KEY',
  },
  client: { secret: 'SECRET' },
};

export type KeyChainDocument = z.infer<typeof NewKeyChain> | z.infer<typeof BroughtKeyChain>;

type BodyOf<Kind extends DocumentKind> = Kind extends 'key-chain'
  ? KeyChainDocument
  : z.infer<(typeof SCHEMAS)[Kind]>;

/** A document that is right in itself. */
export type ImportDocument<Kind extends DocumentKind = DocumentKind> = {
  readonly [K in DocumentKind]: {
    readonly kind: K;
    readonly file: string;
    readonly tenant: string;
    /** Empty for what a tenant has one of. */
    readonly id: string;
    readonly body: BodyOf<K>;
  };
}[Kind];

/** The member that names the thing, for kinds of which a tenant has several; its own for the tenant itself. */
const ID_MEMBER: Readonly<Record<DocumentKind, 'id' | 'clientId' | undefined>> = {
  tenant: 'id',
  'key-chain': 'id',
  registrar: undefined,
  presentation: 'id',
  'trust-list': 'id',
  issuance: undefined,
  credential: 'id',
  client: 'clientId',
};

/** What a document calls its thing; the name of the file (of the folder, for a tenant) unless it says. */
export function idOf(
  document: Pick<FolderDocument, 'kind' | 'name' | 'tenant'> & { value?: JsonObject },
): string {
  const member = ID_MEMBER[document.kind];
  if (member === undefined) return '';
  const given = document.value?.[member];
  if (typeof given === 'string') return given;
  return document.kind === 'tenant' ? document.tenant : document.name;
}

/** Judges a document as the administrative interface judges a body. */
export function readDocument(
  document: FolderDocument,
): { readonly document: ImportDocument } | { readonly faults: readonly FolderFault[] } {
  const { file, tenant, kind } = document;
  const id = idOf(document);
  const value = withId(kind, id, withReadableKey(kind, document.value));
  const schema = kind === 'key-chain' && value['key'] !== undefined ? BroughtKeyChain : SCHEMAS[kind];
  const read = readWritten(schema as z.ZodType, value);
  const faults = [...('errors' in read ? read.errors : []), ...hiddenSecrets(kind, value)]
    .filter(({ path }) => !document.unfilled.some((unfilled) => isWithin(path, unfilled)))
    .map((fault) => ({ file, ...fault }));
  if (kind === 'tenant' && id !== tenant) {
    faults.push({ file, path: 'id', message: `is another one than the name of the folder, "${tenant}"` });
  }
  if (faults.length > 0 || 'errors' in read || document.unfilled.length > 0) return { faults };
  return { document: { kind, file, tenant, id, body: read.data } as ImportDocument };
}

function withId(kind: DocumentKind, id: string, value: JsonObject): JsonObject {
  const member = ID_MEMBER[kind];
  return member === undefined || value[member] !== undefined ? value : { ...value, [member]: id };
}

/** A variable holds text: a JWK in it is an object, and line breaks of a PEM may have been written `\n`. */
function withReadableKey(kind: DocumentKind, value: JsonObject): JsonObject {
  const { key } = value;
  if (kind !== 'key-chain' || typeof key !== 'string') return value;
  if (key.trimStart().startsWith('{')) return { ...value, key: parseJsonObject(key) ?? key };
  return { ...value, key: key.includes('\n') ? key : key.replaceAll('\\n', '\n') };
}

/** Answers show secrets so. Here it would be the secret itself. */
function hiddenSecrets(kind: DocumentKind, value: JsonObject): { path: string; message: string }[] {
  const paths: string[] = [];
  mapTexts(value, (text, path) => {
    if (text === HIDDEN && SECRETS[kind]?.[path] !== undefined) paths.push(path);
    return text;
  });
  return paths.map((path) => ({
    path,
    message: 'is what answers show for a secret; give the secret by a placeholder',
  }));
}

function isWithin(path: string, outer: string): boolean {
  return path === outer || path.startsWith(`${outer}.`) || outer.startsWith(`${path}.`);
}
