import { writePemCertificates } from '../../domain/formats/der/pem.ts';
import { type FieldError, invalidFields } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { type InternalTrustList, parseInternalTrustListAddress } from '../../domain/trust-lists/internal-address.ts';
import { parseTrustList, type TrustList } from '../../domain/trust-lists/lote.ts';
import { documentOf, type PublishedList } from '../../domain/trust-lists/published-list.ts';
import { hasServicesFor, type TrustPurpose, WALLET_PROVIDERS } from '../../domain/trust-lists/select-certificates.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Remote } from '../ports/remote.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store, StoreUnavailableError } from '../ports/store.ts';
import { TrustListReader } from '../ports/trust-list-reader.ts';
import { LIST_TIMEOUT_MS, MAX_LISTS_IN_MEMORY } from './fetched-lists.ts';
import { downloadTrustList, isXml } from './open-list.ts';
import { withDeadline } from './query-lists.ts';
import { TenantSlots } from './tenant-slots.ts';
import type { PinnedSigners } from './verify-trust-list.ts';

/** A list in a configuration: its address, and the path of the property. */
export type NamedList = {
  readonly uri: string;
  readonly path: string;
  /** A list that has only services for other purposes is rejected. */
  readonly purpose?: TrustPurpose;
};

export type CertifiedList = { readonly uri: string; readonly signers: PinnedSigners };

/** Result for a list. `list` is undefined if the list was not inspected, as in an import, which fetches nothing. */
export type InspectedList = { readonly list: TrustList | undefined } | { readonly refusal: TrustListRefusal };

/** The certificate of the signer (PEM) and the content of a list. A list of this service has no `pem`. */
export type SignerAndContent = { readonly pem?: string; readonly list?: TrustList };

/**
 * Finds the signers of lists that are configured without them: the lists are fetched when the configuration is written, and their
 * signers are pinned.
 */
export class ListSigners extends needs({
  store: Store,
  settings: ServiceSettings,
  remote: Remote,
  trustListReader: TrustListReader,
  clock: Clock,
}) {
  readonly #slots = new TenantSlots(MAX_LISTS_IN_MEMORY);

  /**
   * @returns the certificate (PEM) of the signer by address; none for lists of this service, whose keys are known.
   * @throws Failure `invalid_input` with every list that is unavailable or unusable.
   */
  async pin(tenantId: TenantId, lists: readonly NamedList[]): Promise<ReadonlyMap<string, string>> {
    const errors: FieldError[] = [];
    const pins = await Promise.all(
      lists.map(async ({ uri, path, purpose }) => {
        try {
          const { pem, list } = await this.#slots.run(tenantId, () => this.signerOf(tenantId, uri));
          const problem = list && purpose && findPurposeProblem(list, purpose);
          if (problem !== undefined) throw new TrustListRefusal('another_list', problem);
          return [uri, pem] as const;
        } catch (error) {
          if (!(error instanceof TrustListRefusal)) throw error;
          errors.push({ path, message: `The trust list cannot be used: ${error.message}.` });
          return [uri, undefined] as const;
        }
      }),
    );
    if (errors.length > 0) throw invalidFields(errors);
    return new Map(pins.flatMap(([uri, pem]) => (pem === undefined ? [] : [[uri, pem] as const])));
  }

  /**
   * Verifies lists with their configured signers, concurrently and within the time of one download. Nothing is cached, so a list that is
   * repaired afterwards is used at once.
   */
  async inspect(tenantId: TenantId, lists: readonly CertifiedList[]): Promise<readonly InspectedList[]> {
    const deadline = performance.now() + LIST_TIMEOUT_MS;
    return Promise.all(
      lists.map(async (certifiedList): Promise<InspectedList> => {
        try {
          const readInTime = async () => {
            // A slot was free only after the deadline, so the caller no longer waits.
            if (performance.now() >= deadline) throw new TrustListRefusal('unavailable', 'it was not downloaded and parsed in time');
            return this.read(tenantId, certifiedList);
          };
          return { list: await withDeadline(this.#slots.run(tenantId, readInTime), deadline) };
        } catch (error) {
          if (error instanceof StoreUnavailableError) throw error;
          const isRefusal = error instanceof TrustListRefusal;
          return { refusal: isRefusal ? error : new TrustListRefusal('unavailable', 'it cannot be parsed') };
        }
      }),
    );
  }

  /** @throws TrustListRefusal */
  protected async read(tenantId: TenantId, { uri, signers }: CertifiedList): Promise<TrustList | undefined> {
    const { settings, remote, clock } = this.ports;
    const ownList = parseInternalTrustListAddress(uri, settings.publicUrl);
    if (ownList !== undefined) return parseTrustList(documentOf(await this.#published(ownList)), clock.now());
    // The configuration is rejected for the missing certificates.
    if (signers.anchors.length === 0) return undefined;
    const bytes = await downloadTrustList(remote, tenantId, uri);
    const reading = { signers: signers.anchors, now: clock.now(), tenantId };
    return (await this.ports.trustListReader.open(bytes, reading)).list;
  }

  async #published({ tenantId, listId }: InternalTrustList): Promise<Pick<PublishedList, 'jwt'>> {
    const published = await this.ports.store.read(tenantId).trustList(listId);
    if (published !== undefined) return published;
    throw new TrustListRefusal('unavailable', 'this service publishes no such list');
  }

  /** @throws TrustListRefusal */
  protected async signerOf(tenantId: TenantId, uri: string): Promise<SignerAndContent> {
    const { settings, remote, clock } = this.ports;
    const ownList = parseInternalTrustListAddress(uri, settings.publicUrl);
    if (ownList !== undefined) return contentOf(await this.#published(ownList), clock.now());
    const bytes = await downloadTrustList(remote, tenantId, uri);
    // TS 119 612: the signer of such a list is determined by the list of lists, not by the list itself
    if (isXml(bytes)) throw new TrustListRefusal('untrusted_signer', 'the list is in XML; set the certificate of its signer');
    const openedList = await this.ports.trustListReader.open(bytes, { signers: 'shown', now: clock.now(), tenantId });
    const { list, signer = '' } = openedList;
    const pem = writePemCertificates([signer]);
    if (list.entities.length === 0 && (list.pointers !== undefined || list.isListOfLists === true)) {
      throw new TrustListRefusal('malformed', 'it only points to other lists; add it to trustAnchors with follow');
    }
    return { pem, list };
  }
}

/** Returns the content of a list of this service. It is empty for an expired list, which is accepted because a job renews it. */
function contentOf(published: Pick<PublishedList, 'jwt'>, now: Date): SignerAndContent {
  try {
    return { list: parseTrustList(documentOf(published), now) };
  } catch (error) {
    if (error instanceof TrustListRefusal) return {};
    throw error;
  }
}

/** @returns the problem of a list that has only services for other purposes; undefined for a list without this problem. */
export function findPurposeProblem(list: TrustList, purpose: TrustPurpose): string | undefined {
  if (hasServicesFor(list, purpose)) return undefined;
  const entities = purpose === WALLET_PROVIDERS ? 'wallet providers' : 'issuers of credentials';
  const types = purpose.services.map(({ issuance }) => issuance).join(' or ');
  return `it is not a list of ${entities}, which has services of the type ${types}`;
}
