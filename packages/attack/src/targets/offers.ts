import { expectSuccess, NoControl } from '../core/case.ts';
import { runCommand } from '../core/command.ts';
import type { HttpClient, Json } from '../core/http.ts';
import type { Options } from '../core/options.ts';
import { Skip } from '../core/skip.ts';
import type { VidimusApi } from './vidimus-api.ts';

export const PRE_AUTHORIZED = 'urn:ietf:params:oauth:grant-type:pre-authorized_code';
const TX_CODE = '493536';

export type Offer = {
  readonly link: string;
  readonly issuer: string;
  readonly ids: readonly string[];
  readonly kind: OfferKind;
  readonly preCode: string;
  readonly issuerState: string | undefined;
  readonly server: string | undefined;
  /** URL of the offer; none for an offer by value. */
  readonly address: string | undefined;
  /** The Vidimus that created it. */
  readonly session: string | undefined;
};

/** `tx`: a pre-authorized code that needs a transaction code. */
export type OfferKind = 'pre' | 'tx' | 'code';

type Link = { readonly uri: string; readonly session?: string };

/** Offers of one kind for the same credentials. */
export class OfferSource {
  readonly kind: OfferKind;
  readonly ids: readonly string[];
  readonly txCode: string;
  readonly issuer: string;
  /** The authorization server in the offer. */
  readonly server: string | undefined;
  readonly #http: HttpClient;
  readonly #make: () => Promise<Link>;
  #first: Offer | undefined;

  constructor(http: HttpClient, make: () => Promise<Link>, firstOffer: Offer, txCode: string) {
    this.kind = firstOffer.kind;
    this.ids = firstOffer.ids;
    this.txCode = txCode;
    this.issuer = firstOffer.issuer;
    this.server = firstOffer.server;
    this.#http = http;
    this.#make = make;
    this.#first = firstOffer;
  }

  /** An unused offer. @throws Skip when there are no more. */
  async next(): Promise<Offer> {
    const firstOffer = this.#first;
    this.#first = undefined;
    return firstOffer ?? readOffer(this.#http, await this.#make());
  }
}

/** Sources of offers, each with its first offer. */
export async function openOffers(http: HttpClient, options: Options, api?: VidimusApi): Promise<OfferSource[]> {
  const makers = options['offer-command'].map((command) => async () => ({ uri: await runCommand(command) }));
  const txCode = options['tx-code'] ?? TX_CODE;
  const sources = await Promise.all(makers.map(async (make) => [make, await readOffer(http, await make())] as const));
  const givenOffers = await Promise.all(options.offer.map((uri) => readOffer(http, { uri })));
  const offerSources = sources.map(([make, firstOffer]) => new OfferSource(http, make, firstOffer, txCode));
  for (const offer of givenOffers) offerSources.push(new OfferSource(http, noOfferLeft, offer, txCode));
  if (api !== undefined) offerSources.push(...(await offersOf(http, options, api)));
  return offerSources;
}

async function noOfferLeft(): Promise<Link> {
  throw new Skip('no fresh offer is left; give --offer-command');
}

async function offersOf(http: HttpClient, options: Options, api: VidimusApi): Promise<OfferSource[]> {
  const ids = options.configuration.length > 0 ? options.configuration : await api.ids('/issuer/credentials');
  const sources: OfferSource[] = [];
  const add = async (body: object) => {
    const make = () => api.make('/issuer/offer', body);
    sources.push(new OfferSource(http, make, await readOffer(http, await make()), TX_CODE));
  };
  for (const id of ids.slice(0, 6)) {
    await add({ flow: 'pre_authorized_code', credentialConfigurationIds: [id] });
  }
  const [firstOffer] = ids;
  if (firstOffer === undefined) return sources;
  await add({ flow: 'pre_authorized_code', credentialConfigurationIds: [firstOffer], tx_code: TX_CODE });
  await add({ flow: 'authorization_code', credentialConfigurationIds: [firstOffer] });
  return sources;
}

/** Reads a link like a wallet (OpenID4VCI 1.0 section 4.1). */
export async function readOffer(http: HttpClient, { uri, session }: Link): Promise<Offer> {
  const parameters = new URLSearchParams(uri.slice(uri.indexOf('?') + 1));
  const address = parameters.get('credential_offer_uri') ?? undefined;
  const text = parameters.get('credential_offer');
  let content: Json;
  if (address !== undefined) content = expectSuccess(await http.call(address), 'fetching the offer').json;
  else content = text === null ? undefined : JSON.parse(text);
  if (typeof content?.credential_issuer !== 'string') throw new NoControl('this is no credential offer');
  const { [PRE_AUTHORIZED]: pre, authorization_code: code } = content.grants ?? {};
  return {
    link: uri,
    issuer: content.credential_issuer,
    ids: content.credential_configuration_ids ?? [],
    kind: pre === undefined ? 'code' : pre.tx_code === undefined ? 'pre' : 'tx',
    preCode: String(pre?.['pre-authorized_code'] ?? ''),
    issuerState: code?.issuer_state,
    server: pre?.authorization_server ?? code?.authorization_server,
    address,
    session,
  };
}
