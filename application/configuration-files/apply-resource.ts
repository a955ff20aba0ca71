import type { IssuanceConfigurationBody } from '../../domain/issuance/issuance-configuration.ts';
import { keepTypeIntegrity } from '../../domain/issuance/type-metadata.ts';
import { keepWalletListPins } from '../../domain/issuance/wallet-list-pins.ts';
import type { FileBody, FileKind } from '../../domain/resources.ts';
import { safeParseInput } from '../../domain/shared/parse-input.ts';
import type { PresentationConfigurationBody } from '../../domain/verification/configuration.ts';
import { keepDemandedListPins } from '../../domain/verification/list-pins.ts';
import type { TenantCaller } from '../caller.ts';
import { ReplaceCredentialConfiguration } from '../issuance/credential-configurations.ts';
import { ReplaceIssuanceConfiguration } from '../issuance/issuance-configurations.ts';
import { ReplaceRegistrarConfiguration } from '../registrar/registrar-configurations.ts';
import { CreateTrustList, ReplaceTrustList } from '../trust-lists/trust-lists.ts';
import { ReplacePresentationConfiguration } from '../verification/presentation-configurations.ts';
import type { Administration } from './administration.ts';
import { applyClient } from './apply-client.ts';
import { applyKeyChain } from './apply-key-chain.ts';
import { asDocument, type Document, fileFormatOf, repositoryOf } from './documents.ts';
import { isSame, type Outcome } from './outcome.ts';

type Ports = Administration['ports'];
/** @param storedId id of the stored document, if there is one. */
type Write<Kind extends FileKind> = (
  ports: Ports,
  caller: TenantCaller,
  body: FileBody<Kind>,
  storedId: string | undefined,
) => Promise<unknown>;

/** Writers of the kinds that a document describes as a whole. */
const WRITERS = {
  'registrar-configuration': (ports, caller, body) => new ReplaceRegistrarConfiguration(ports).execute(caller, body),
  'presentation-configuration': (ports, caller, body) => new ReplacePresentationConfiguration(ports).execute(caller, body),
  'trust-list': (ports, caller, body, storedList) =>
    storedList === undefined
      ? new CreateTrustList(ports).execute(caller, body)
      : new ReplaceTrustList(ports).execute(caller, storedList, body),
  'issuance-configuration': (ports, caller, body) => new ReplaceIssuanceConfiguration(ports).execute(caller, body),
  'credential-configuration': (ports, caller, body) => new ReplaceCredentialConfiguration(ports).execute(caller, body),
} as const satisfies { readonly [Kind in Exclude<FileKind, 'tenant' | 'client' | 'key-chain'>]: Write<Kind> };

/** Creates or updates the resource of a document, unless it is up to date. */
export async function applyResource(administration: Administration, document: Exclude<Document, { kind: 'tenant' }>): Promise<Outcome> {
  if (document.kind === 'client') return applyClient(administration, document);
  if (document.kind === 'key-chain') return applyKeyChain(administration, document);
  const { kind, tenant, id, body } = document;
  const { ports } = administration;
  const caller = await administration.callerOf(tenant);
  const storedResource = await ports.store.forTenant(tenant, (repositories) => repositoryOf(repositories, kind).find(id || 'default'));
  const storedDocument = storedResource && withDefaults(kind, asDocument(kind, storedResource));
  if (storedDocument !== undefined && isSame(storedDocument, withStoredValues(kind, body, storedDocument))) return 'unchanged';
  const write: Write<never> = WRITERS[kind];
  await write(ports, caller, body as never, storedDocument && id);
  return storedDocument === undefined ? 'created' : 'changed';
}

/** A stored document with the defaults of properties that were added since it was stored. */
function withDefaults(kind: FileKind, storedDocument: Readonly<Record<string, unknown>>): object {
  const { createdAt: _createdAt, updatedAt: _updatedAt, ...document } = storedDocument;
  const parsed = safeParseInput(fileFormatOf(kind).body, JSON.parse(JSON.stringify(document)));
  return 'errors' in parsed ? storedDocument : (parsed.data as object);
}

/** The document with stored values that a file does not contain: pinned signers of external lists, and promises. */
function withStoredValues(kind: FileKind, body: object, storedDocument: object): object {
  if (kind === 'issuance-configuration')
    return keepWalletListPins(body as IssuanceConfigurationBody, storedDocument as IssuanceConfigurationBody);
  if (kind === 'credential-configuration') return keepTypeIntegrity(body, storedDocument);
  if (kind === 'presentation-configuration')
    return keepDemandedListPins(body as PresentationConfigurationBody, storedDocument as PresentationConfigurationBody);
  return body;
}
