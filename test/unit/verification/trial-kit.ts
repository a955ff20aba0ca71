import { PresentationVerifier } from '../../../application/verification/presentation-verifier.ts';
import { TryPresentation } from '../../../application/verification/try-presentation.ts';
import { decodeCbor } from '../../../domain/formats/cbor/decode.ts';
import { encodeCbor } from '../../../domain/formats/cbor/encode.ts';
import type { CborMap } from '../../../domain/formats/cbor/values.ts';
import { prepareMdoc, sealMdoc } from '../../../domain/formats/mdoc/issue.ts';
import { type KeyChain, signingChain } from '../../../domain/keys/key-chain.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import type { Trial } from '../../../domain/verification/trial/trial.ts';
import { ACME, type FetchedRequest, type PresentationChanges, present, query, World } from './kit.ts';

export const DAY_MS = 86_400_000;
const TYPE = 'org.example.card.1';
export const NAMESPACE = 'org.example.card';
/** A placeholder: presentations in trials are not bound to a request. */
const UNBOUND_REQUEST = { request: { clientId: 'x509_hash:unknown', nonce: 'another' } } as unknown as FetchedRequest;
export const LICENCE = { id: 'licence', format: 'mso_mdoc', meta: { doctype_value: TYPE }, claims: [{ path: [NAMESPACE, 'name'] }] };

/** A world for trials of presentations. */
export class TrialWorld {
  readonly world: World;

  private constructor(world: World) {
    this.world = world;
  }

  static async make(): Promise<TrialWorld> {
    return new TrialWorld(await World.make());
  }

  async tryPresentation(presentation: string, allowed: string[] | null = null, id = 'card'): Promise<Trial> {
    const { world } = this;
    const presentationVerifier = new PresentationVerifier({ ...world, issuerTrusts: world.issuerTrusts });
    const useCase = new TryPresentation({ clock: world.clock, presentationVerifier });
    return useCase.execute(await world.caller(ACME, allowed), id, presentation);
  }

  card(changes: PresentationChanges = {}): string {
    return present(this.world, UNBOUND_REQUEST, changes);
  }

  /** Creates an mdoc as issued. */
  licence(options: { issuer?: KeyChain; docType?: string; signed?: Date } = {}): string {
    const { world } = this;
    const { issuer = world.issuer, docType = TYPE, signed = world.clock.now() } = options;
    const prepared = prepareMdoc({
      docType,
      claimsByNamespace: { [NAMESPACE]: { name: 'Erika', born: '1971-09-01' } },
      holderKey: world.holder.jwk,
      signer: { algorithm: 'ES256', chain: signingChain(issuer) },
      validity: { signed, validFrom: signed, validUntil: new Date(signed.getTime() + DAY_MS) },
      random: (length: number) => world.random.bytes(length),
    });
    return sealMdoc(prepared, world.sign(issuer, prepared.toSign as never));
  }
}

/** Returns the presentation without its key binding. */
export const withoutKeyBinding = (text: string) => text.slice(0, text.lastIndexOf('~') + 1);

/** Returns the results of each query per presentation. */
export const summarize = ({ presentations }: Trial) =>
  presentations.map(({ queries }) => queries.map(({ id, result, reason }) => [id, reason ?? result]));

/** Returns a DeviceResponse without a device signature. */
export function deviceResponse(...issuerSigned: string[]): Buffer {
  const documents = issuerSigned.map((text) => ({ docType: TYPE, issuerSigned: decodeCbor(Buffer.from(text, 'base64url')) as CborMap }));
  return encodeCbor({ version: '1.0', documents, status: 0 });
}

export function cardQueries(...ids: string[]): JsonObject[] {
  return query(...ids.map((id) => ({ id })))['credentials'] as JsonObject[];
}
