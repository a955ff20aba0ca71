import type { IssuanceConfigurationBody } from '../../domain/issuance/issuance-configuration.ts';
import { keepWalletListPins } from '../../domain/issuance/kept-list-pins.ts';
import { keepTypeIntegrity } from '../../domain/issuance/type-metadata.ts';
import type { FileBody, FileKind } from '../../domain/resources.ts';
import { safeParseWritten } from '../../domain/shared/parse-written.ts';
import type { PresentationConfigurationBody } from '../../domain/verification/configuration.ts';
import { keepDemandedListPins } from '../../domain/verification/kept-list-pins.ts';
import type { TenantCaller } from '../caller.ts';
import { ReplaceCredentialConfiguration } from '../issuance/credential-configurations.ts';
import { ReplaceIssuanceConfiguration } from '../issuance/issuance-configurations.ts';
import { ReplaceRegistrarConfiguration } from '../registrar/registrar-configurations.ts';
import { CreateTrustList, ReplaceTrustList } from '../trust-lists/trust-lists.ts';
import { ReplacePresentationConfiguration } from '../verification/presentation-configurations.ts';
import type { Administration } from './administration.ts';
import { applyClient } from './apply-client.ts';
import { applyKeyChain } from './apply-key-chain.ts';
import { asDocument, type Document, describedBy, repositoryOf } from './documents.ts';
import { isSame, type Outcome } from './outcome.ts';

type Ports = Administration['ports'];
/** @param known the id of the one that is there. */
type Write<Kind extends FileKind> = (
  ports: Ports,
  caller: TenantCaller,
  body: FileBody<Kind>,
  known: string | undefined,
) => Promise<unknown>;

/** How a kind is written that a document describes as a whole. */
const WRITE = {
  'registrar-configuration': (ports, caller, body) => new ReplaceRegistrarConfiguration(ports).execute(caller, body),
  'presentation-configuration': (ports, caller, body) => new ReplacePresentationConfiguration(ports).execute(caller, body),
  'trust-list': (ports, caller, body, known) =>
    known === undefined ? new CreateTrustList(ports).execute(caller, body) : new ReplaceTrustList(ports).execute(caller, known, body),
  'issuance-configuration': (ports, caller, body) => new ReplaceIssuanceConfiguration(ports).execute(caller, body),
  'credential-configuration': (ports, caller, body) => new ReplaceCredentialConfiguration(ports).execute(caller, body),
} as const satisfies { readonly [Kind in Exclude<FileKind, 'tenant' | 'client' | 'key-chain'>]: Write<Kind> };

/** Makes what a document describes, or brings it to what the document says. What is as wanted is not touched. */
export async function applyResource(administration: Administration, document: Exclude<Document, { kind: 'tenant' }>): Promise<Outcome> {
  if (document.kind === 'client') return applyClient(administration, document);
  if (document.kind === 'key-chain') return applyKeyChain(administration, document);
  const { kind, tenant, id, body } = document;
  const { ports } = administration;
  const caller = await administration.callerOf(tenant);
  const stored = await ports.store.forTenant(tenant, (own) => repositoryOf(own, kind).find(id || 'default'));
  const known = stored && withDefaults(kind, asDocument(kind, stored));
  if (known !== undefined && isSame(known, withKept(kind, body, known))) return 'unchanged';
  const write: Write<never> = WRITE[kind];
  await write(ports, caller, body as never, known && id);
  return known === undefined ? 'created' : 'changed';
}

/** A stored document with the defaults of members that the release which stored it did not have. */
function withDefaults(kind: FileKind, known: Readonly<Record<string, unknown>>): object {
  const { createdAt: _createdAt, updatedAt: _updatedAt, ...document } = known;
  const read = safeParseWritten(describedBy(kind).body, JSON.parse(JSON.stringify(document)));
  return 'errors' in read ? known : (read.data as object);
}

/** What a write keeps that the file does not say: who signs the lists of others, found out on the way, and promises. */
function withKept(kind: FileKind, body: object, known: object): object {
  if (kind === 'issuance-configuration') return keepWalletListPins(body as IssuanceConfigurationBody, known as IssuanceConfigurationBody);
  if (kind === 'credential-configuration') return keepTypeIntegrity(body, known);
  if (kind === 'presentation-configuration')
    return keepDemandedListPins(body as PresentationConfigurationBody, known as PresentationConfigurationBody);
  return body;
}
