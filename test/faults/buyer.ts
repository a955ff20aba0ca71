import { decode } from '../support/present.ts';
import { keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { CARD, type Entry } from '../support/revocable-cards.ts';
import type { Issuance } from './ledger.ts';
import type { Steps } from './steps.ts';
import type { World } from './world.ts';

const CREDENTIALS = 2;
/** Of codes, so many are redeemed by two wallets at the same moment, or tried by another one afterwards. */
const STOLEN_SHARE = 0.2;
const REPEATED_SHARE = 0.3;

type Winner = { readonly wallet: RawWallet; readonly token: string };

/** Has credentials issued, and others try to have them, too. */
export class Buyer {
  readonly #world: World;
  readonly #steps: Steps;

  constructor(world: World, steps: Steps) {
    this.#world = world;
    this.#steps = steps;
  }

  /** @returns what was issued. */
  async issue(): Promise<Issuance | undefined> {
    const { deployment, ledger } = this.#world;
    const json = {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: [CARD.id],
    };
    const make = () => this.#world.call('POST', '/issuer/offer', json);
    const made = await this.#steps.must('offer', 201, make);
    if (made === undefined) return undefined;
    const issuance = ledger.offered(made.body.session);
    const reference = new URL(made.body.uri).searchParams.get('credential_offer_uri') ?? '';
    const offer = await this.#steps.must('fetch offer', 200, () => deployment.call('GET', reference));
    if (offer === undefined) return undefined;
    const [grant] = Object.values(offer.body.grants) as { 'pre-authorized_code': string }[];
    issuance.code = grant?.['pre-authorized_code'] ?? '';
    const winner = await this.#redeem(issuance, Math.random() < STOLEN_SHARE ? 2 : 1);
    if (winner === undefined) return undefined;
    if (Math.random() < STOLEN_SHARE) await this.#redeemAs(this.#wallet(), issuance);
    for (let tries = 0; tries < 2; tries++) if (await this.#collect(issuance, winner)) return issuance;
    return undefined;
  }

  #wallet(): RawWallet {
    return new RawWallet(this.#world.deployment, this.#world.tenant.id);
  }

  /** One of the wallets gets it. The same one may ask again until it has used its token. */
  async #redeem(issuance: Issuance, wallets: number): Promise<Winner | undefined> {
    const all = Array.from({ length: wallets }, () => this.#redeemAs(this.#wallet(), issuance));
    const ended = await Promise.allSettled(all);
    const outcomes = ended.map((one) => {
      if (one.status === 'rejected') throw one.reason;
      return one.value;
    });
    const winner = outcomes.find(({ won }) => won !== undefined)?.won;
    const isSure = outcomes.every((one) => one.isSure) && !this.#steps.isForgiving;
    if (winner === undefined && isSure) this.#world.ledger.violate(`redeem: ${outcomes[0]?.text}`);
    return winner;
  }

  async #redeemAs(wallet: RawWallet, issuance: Issuance) {
    const redeem = () => wallet.redeem(issuance.code ?? '');
    const { answer, isSure } = await this.#steps.take('redeem', redeem);
    if (answer.status !== 200) return { won: undefined, isSure, text: `${answer.status} ${answer.text}` };
    this.#world.ledger.redeemed(issuance);
    return { won: { wallet, token: answer.body.access_token as string }, isSure, text: '' };
  }

  /** @returns whether credentials came. */
  async #collect(issuance: Issuance, { wallet, token }: Winner): Promise<boolean> {
    const { ledger, deployment } = this.#world;
    const ask = () => deployment.call('POST', `/${wallet.tenant}/nonce`);
    const given = await this.#steps.must('nonce', 200, ask);
    if (given === undefined) return false;
    const nonce: string = given.body.c_nonce;
    const request = () => {
      const keys = Array.from({ length: CREDENTIALS }, () => newKey());
      const jwt = keys.map((key) => keyProof(key, wallet.issuer, nonce));
      const body = { credential_configuration_id: CARD.id, proofs: { jwt } };
      return wallet.request(token, CARD.id, { body });
    };
    const answer = await this.#steps.must('credential', 200, request);
    if (answer === undefined) return false;
    ledger.issued(issuance, nonce, answer.body.credentials.map(entryOf));
    if (Math.random() < REPEATED_SHARE) {
      const { answer: again } = await this.#steps.take('credential again', request);
      if (again.status === 200) ledger.issued(issuance, nonce, again.body.credentials.map(entryOf));
    }
    return true;
  }
}

function entryOf({ credential }: { readonly credential: string }): Entry {
  const { uri, idx } = decode(credential).payload['status'].status_list;
  return { uri, idx, listId: String(uri).split('/').at(-1) ?? '' };
}
