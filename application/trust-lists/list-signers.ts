import { writePemCertificates } from '../../domain/formats/der/pem.ts';
import { type FieldError, invalidFields } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { isJsonObject } from '../../domain/shared/json.ts';
import { ownTrustListOf } from '../../domain/trust-lists/own-address.ts';
import { openSignedList } from '../../domain/trust-lists/signed-list.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import { needs } from '../needs.ts';
import { Certificates } from '../ports/certificates.ts';
import { Clock } from '../ports/clock.ts';
import { Remote } from '../ports/remote.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Signatures } from '../ports/signatures.ts';
import { Store } from '../ports/store.ts';
import { compactText, downloadTrustList, isXml } from './open-list.ts';
import { pinSigners, verifyTrustList } from './verify-trust-list.ts';

/** A list as a configuration names it: its address, and where that stands. */
export type NamedList = { readonly uri: string; readonly path: string };

/**
 * Who signs the lists that a configuration names without saying so: they are fetched when it is written, and their signers
 * pinned, so that nobody else speaks for them afterwards.
 */
export class ListSigners extends needs({
  store: Store,
  settings: ServiceSettings,
  remote: Remote,
  signatures: Signatures,
  certificates: Certificates,
  clock: Clock,
}) {
  /**
   * @returns by address the certificate of the signer, PEM; nothing for lists of this service, whose keys are known.
   * @throws Failure `invalid_input` that names every list that cannot be had or used.
   */
  async pin(tenantId: TenantId, lists: readonly NamedList[]): Promise<ReadonlyMap<string, string>> {
    const errors: FieldError[] = [];
    const pins = await Promise.all(
      lists.map(async ({ uri, path }) => {
        try {
          return [uri, await this.signerOf(tenantId, uri)] as const;
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

  /** @returns undefined for a list of this service. @throws TrustListRefusal */
  protected async signerOf(tenantId: TenantId, uri: string): Promise<string | undefined> {
    const { store, settings, remote, clock } = this.ports;
    const own = ownTrustListOf(uri, settings.publicUrl);
    if (own !== undefined) {
      const published = await store.read(own.tenantId).trustList(own.listId);
      if (published === undefined)
        throw new TrustListRefusal('unavailable', 'this service publishes no such list');
      return undefined;
    }
    const bytes = await downloadTrustList(remote, tenantId, uri);
    // TS 119 612: whoever signs it stands in the list of lists, and is not learnt from the list itself
    if (isXml(bytes))
      throw new TrustListRefusal('untrusted_signer', 'of a list in XML, give the certificate');
    const text = compactText(bytes);
    const { signer, jws } = openSignedList(text);
    if ('thumbprint' in signer) {
      throw new TrustListRefusal(
        'untrusted_signer',
        'it names its signer by a hash alone; give the certificate',
      );
    }
    const pem = writePemCertificates(signer.chain.slice(0, 1));
    const { list } = verifyTrustList(this.ports, text, pinSigners([pem]), clock.now());
    if (list.entities.length === 0 && pointsElsewhere(jws.payload['LoTE'])) {
      throw new TrustListRefusal(
        'malformed',
        'it only points to other lists; name it in trustAnchors, with follow',
      );
    }
    return pem;
  }
}

/** TS 119 602 section 6.3.13 */
function pointsElsewhere(list: unknown): boolean {
  const scheme = isJsonObject(list) ? list['ListAndSchemeInformation'] : undefined;
  const pointers = isJsonObject(scheme) ? scheme['PointersToOtherLoTE'] : undefined;
  return Array.isArray(pointers) && pointers.length > 0;
}
