import { setTimeout as pause } from 'node:timers/promises';
import { bindToRequest, decode, encryptResponse } from '../support/present.ts';
import { keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { CARD, type StatusEntry } from '../support/revocable-cards.ts';
import { NoAnswer } from './calls.ts';
import type { Issuance, Presentation } from './ledger.ts';
import { Steps } from './steps.ts';
import type { World } from './world.ts';

const CREDENTIALS = 2;
/** Share of codes that two wallets redeem simultaneously, or that another wallet tries afterwards. */
const STOLEN_SHARE = 0.2;
const REPEATED_SHARE = 0.3;

type Winner = { readonly wallet: RawWallet; readonly token: string };

/** Issues credentials, and tries to redeem their codes a second time. */
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
    const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: [CARD.id] };
    const make = () => this.#world.call('POST', '/issuer/offer', json);
    const made = await this.#steps.expectStatus('offer', 201, make);
    if (made === undefined) return undefined;
    const issuance = ledger.offered(made.body.session);
    const reference = new URL(made.body.uri).searchParams.get('credential_offer_uri') ?? '';
    const offer = await this.#steps.expectStatus('fetch offer', 200, () => deployment.call('GET', reference));
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
    const redemptions = Array.from({ length: wallets }, () => this.#redeemAs(this.#wallet(), issuance));
    const results = await Promise.allSettled(redemptions);
    const outcomes = results.map((outcome) => {
      if (outcome.status === 'rejected') throw outcome.reason;
      return outcome.value;
    });
    const winner = outcomes.find(({ won }) => won !== undefined)?.won;
    const isCertain = outcomes.every((outcome) => outcome.isSure) && !this.#steps.isForgiving;
    if (winner === undefined && isCertain) this.#world.ledger.violate(`redeem: ${outcomes[0]?.text}`);
    return winner;
  }

  async #redeemAs(wallet: RawWallet, issuance: Issuance) {
    const redeem = () => wallet.redeem(issuance.code ?? '');
    const { answer, isSure: isCertain } = await this.#steps.attempt('redeem', redeem);
    if (answer.status !== 200) return { won: undefined, isSure: isCertain, text: `${answer.status} ${answer.text}` };
    this.#world.ledger.redeemed(issuance);
    return { won: { wallet, token: answer.body.access_token as string }, isSure: isCertain, text: '' };
  }

  /** @returns whether credentials came. */
  async #collect(issuance: Issuance, { wallet, token }: Winner): Promise<boolean> {
    const { ledger, deployment } = this.#world;
    const requestNonce = () => deployment.call('POST', `/${wallet.tenant}/nonce`);
    const nonceResponse = await this.#steps.expectStatus('nonce', 200, requestNonce);
    if (nonceResponse === undefined) return false;
    const nonce: string = nonceResponse.body.c_nonce;
    const request = () => {
      const keys = Array.from({ length: CREDENTIALS }, () => newKey());
      const jwt = keys.map((key) => keyProof(key, wallet.issuer, nonce));
      const body = { credential_configuration_id: CARD.id, proofs: { jwt } };
      return wallet.request(token, CARD.id, { body });
    };
    const answer = await this.#steps.expectStatus('credential', 200, request);
    if (answer === undefined) return false;
    ledger.issued(issuance, nonce, answer.body.credentials.map(statusEntryOf));
    if (Math.random() < REPEATED_SHARE) {
      const { answer: repeatedResponse } = await this.#steps.attempt('credential again', request);
      if (repeatedResponse.status === 200) ledger.issued(issuance, nonce, repeatedResponse.body.credentials.map(statusEntryOf));
    }
    return true;
  }
}

function statusEntryOf({ credential }: { readonly credential: string }): StatusEntry {
  const { uri, idx } = decode(credential).payload['status'].status_list;
  return { uri, idx, listId: String(uri).split('/').at(-1) ?? '' };
}

/** Answers a presentation request and returns to the shop; replays are tried, too. */
export class Shopper {
  readonly #world: World;
  readonly #steps: Steps;

  constructor(world: World, steps: Steps) {
    this.#world = world;
    this.#steps = steps;
  }

  async present(isHooked: boolean): Promise<void> {
    const { deployment, ledger, held } = this.#world;
    const json = { response_type: 'uri', requestId: isHooked ? 'hooked' : 'plain' };
    const make = () => this.#world.call('POST', '/verifier/offer', json);
    const createdRequest = await this.#steps.expectStatus('request', 201, make);
    if (createdRequest === undefined) return;
    const presentation = ledger.requested(createdRequest.body.session, isHooked);
    const url = new URL(createdRequest.body.uri).searchParams.get('request_uri') ?? '';
    const requestResponse = await this.#steps.expectStatus('fetch request', 200, () => deployment.call('GET', url));
    const presentedCredential = held[Math.floor(Math.random() * held.length)];
    if (requestResponse === undefined || presentedCredential === undefined) return;
    const request = decode(requestResponse.text);
    const answer = async () => {
      const vp_token = { card: [bindToRequest(request, presentedCredential)] };
      const form = { response: await encryptResponse(request, { vp_token, state: request.payload['state'] }) };
      ledger.log('presenting', { session: presentation.session });
      return deployment.call('POST', request.payload['response_uri'], { form });
    };
    const presentationResponse = await this.#steps.expectStatus('presentation', 200, answer);
    presentation.wasRefused = presentationResponse === undefined;
    if (presentationResponse === undefined) return;
    ledger.presented(presentation);
    await this.#comeBack(presentation, presentationResponse.body.redirect_uri);
    if (Math.random() > REPEATED_SHARE) return;
    const { answer: repeatedResponse } = await this.#steps.attempt('presentation again', answer);
    if (repeatedResponse.status === 200) ledger.presented(presentation);
  }

  /** Uses the response code, and replays it. */
  async #comeBack(presentation: Presentation, address: string): Promise<void> {
    const code = new URL(address).searchParams.get('response_code') ?? '';
    const path = `/session/${presentation.session}?response_code=${encodeURIComponent(code)}`;
    const bring = () => this.#world.call('GET', path);
    const codeResponse = await this.#steps.expectStatus('response code', 200, bring);
    if (codeResponse !== undefined) this.#world.ledger.brought(presentation);
    const { answer } = await this.#steps.attempt('response code again', bring);
    if (answer.status === 200) this.#world.ledger.brought(presentation);
  }
}

const AFTER_FAULT_MS = 40;
const BUYERS = 3;
const SHOPPERS = 3;
/** Share of issued credentials that are revoked. */
const REVOKED_SHARE = 0.5;
/** Time for repetitions of pending steps at the end of the load. */
const LAST_ATTEMPTS_MS = 3_000;

/** Wallets that buy and show, and an administrator who revokes and changes how the tenant issues; each repeats what was not answered. */
export class Load {
  readonly #world: World;
  readonly #steps: Steps;
  readonly #running: Promise<void>[] = [];
  readonly #issued: Issuance[] = [];
  #isOver = false;

  constructor(world: World) {
    this.#world = world;
    this.#steps = new Steps(world.ledger);
  }

  start(): this {
    const buyer = new Buyer(this.#world, this.#steps);
    const shopper = new Shopper(this.#world, this.#steps);
    const buy = async () => {
      const issuance = await buyer.issue();
      if (issuance !== undefined) this.#issued.push(issuance);
    };
    const work = [
      ...Array.from({ length: BUYERS }, () => buy),
      ...Array.from({ length: SHOPPERS }, (_, index) => () => shopper.present(index % 2 === 0)),
      () => this.#revoke(),
      () => this.#administer(),
    ];
    for (const outcome of work) this.#running.push(this.#repeat(outcome));
    return this;
  }

  /** Tolerates rejections from now on. */
  forgive(): void {
    this.#steps.isForgiving = true;
  }

  /** Lets what is under way come to an end, but nothing is begun any more. */
  async stop(): Promise<void> {
    this.#isOver = true;
    const final = setTimeout(() => {
      this.#steps.isFinal = true;
    }, LAST_ATTEMPTS_MS);
    await Promise.all(this.#running);
    clearTimeout(final);
  }

  async #repeat(work: () => Promise<void>): Promise<void> {
    while (!this.#isOver) {
      try {
        await work();
      } catch (error) {
        // Only missing responses are tolerated; other errors are reported.
        if (!(error instanceof NoAnswer)) this.#world.ledger.violate(String((error as Error).stack));
        await pause(AFTER_FAULT_MS);
      }
    }
  }

  async #revoke(): Promise<void> {
    const issuance = this.#issued.shift();
    if (issuance === undefined) return void (await pause(20));
    if (Math.random() > REVOKED_SHARE) return;
    const { revocations, session } = issuance;
    const answer = await this.#steps.expectStatus('revoke', 201, () => {
      revocations.asked++;
      this.#world.ledger.log('revoking', { session });
      return this.#world.call('POST', '/session/revoke', { sessionId: session, status: 1 });
    });
    if (answer === undefined) return;
    revocations.told++;
    this.#world.ledger.log('revoked', { session });
    await pause(Math.random() * 20);
  }

  async #administer(): Promise<void> {
    const { config } = this.#world.ledger;
    const number = ++config.asked;
    const json = { display: [{ name: `Version ${number}`, locale: 'en' }], batchSize: 10 };
    const write = () => this.#world.call('POST', '/issuer/config', json);
    if ((await this.#steps.expectStatus('configure', 201, write)) !== undefined) config.told = number;
    await pause(50);
  }
}
