import { setTimeout as pause } from 'node:timers/promises';
import { bind, decode, encrypt } from '../support/present.ts';
import { keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { CARD, type Entry } from '../support/revocable-cards.ts';
import type { Answer } from '../support/test-service.ts';
import { NoAnswer, Refused } from './deployment.ts';
import type { Issuance, Presentation } from './ledger.ts';
import type { World } from './world.ts';

const AFTER_SILENCE_MS = 40;
/** How many attempts wallets make before they give something up. */
const ATTEMPTS = 60;
const BUYERS = 3;
const SHOPPERS = 3;
/** Of what was issued, so much is revoked. */
const REVOKED_SHARE = 0.5;

/** What came of a step. `isSure`: no attempt before it may have had an effect that nobody told of. */
type Outcome = { readonly answer: Answer; readonly isSure: boolean };

/** Wallets that buy and show, and an administrator who revokes and changes how the tenant issues; each repeats what was not answered. */
export class Load {
  readonly #world: World;
  readonly #running: Promise<void>[] = [];
  readonly #issued: Issuance[] = [];
  #isOver = false;
  #isFinal = false;
  #isForgiving = false;

  constructor(world: World) {
    this.#world = world;
  }

  start(): this {
    const work = [
      ...Array.from({ length: BUYERS }, () => () => this.#issue()),
      ...Array.from({ length: SHOPPERS }, (_, at) => () => this.#present(at % 2 === 0)),
      () => this.#revoke(),
      () => this.#administer(),
    ];
    for (const one of work) this.#running.push(this.#repeat(one));
    return this;
  }

  /** From now on a refusal is no fault, since a clock is wrong. What was done may still not be done twice. */
  forgive(): void {
    this.#isForgiving = true;
  }

  /** Lets what is under way come to an end, but nothing is tried any more. */
  async stop(): Promise<void> {
    this.#isOver = true;
    const final = setTimeout(() => (this.#isFinal = true), 3_000);
    await Promise.all(this.#running);
    clearTimeout(final);
  }

  async #repeat(work: () => Promise<void>): Promise<void> {
    while (!this.#isOver) {
      try {
        await work();
      } catch (error) {
        // Only silence is forgiven to the service; the rest is told.
        if (!(error instanceof NoAnswer)) this.#world.ledger.violate(`${(error as Error).stack}`);
        await pause(AFTER_SILENCE_MS);
      }
    }
  }

  /** Tries until something is answered. @throws NoAnswer */
  async #step(what: string, call: () => Promise<Answer>): Promise<Outcome> {
    const { ledger } = this.#world;
    const { counts } = ledger;
    let isSure = true;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (attempt > 0) {
        if (this.#isFinal) break;
        await pause(AFTER_SILENCE_MS);
      }
      try {
        const answer = await call();
        if (answer.status === 500) ledger.violate(`${what}: 500 ${answer.text}`);
        if (answer.status < 500 && answer.status !== 429) {
          counts.answered++;
          return { answer, isSure };
        }
        counts.unavailable++;
        isSure = false;
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
        if (error instanceof Refused) {
          counts.refused++;
          continue;
        }
        counts.unanswered++;
        ledger.note('no answer', { step: what, why: error.message });
        isSure = false;
      }
    }
    throw new NoAnswer(`${what}: given up`);
  }

  /** @returns the answer; undefined where it refuses what an attempt before may have done. What was acknowledged has to carry the next step. */
  async #must(what: string, status: number, call: () => Promise<Answer>): Promise<Answer | undefined> {
    const { answer, isSure } = await this.#step(what, call);
    if (answer.status === status) return answer;
    if (isSure && !this.#isForgiving)
      this.#world.ledger.violate(`${what}: ${answer.status} ${answer.text.slice(0, 300)}`);
    return undefined;
  }

  async #issue(): Promise<void> {
    const { deployment, tenant, ledger } = this.#world;
    const json = {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: [CARD.id],
    };
    const made = await this.#must('offer', 201, () => this.#world.call('POST', '/issuer/offer', json));
    if (made === undefined) return;
    const issuance = ledger.offered(made.body.session);
    const wallet = new RawWallet(deployment, tenant.id);
    const reference = new URL(made.body.uri).searchParams.get('credential_offer_uri') ?? '';
    const offer = await this.#must('fetch offer', 200, () => deployment.call('GET', reference));
    if (offer === undefined) return;
    const [grant] = Object.values(offer.body.grants) as { 'pre-authorized_code': string }[];
    const code = grant?.['pre-authorized_code'] ?? '';
    issuance.code = code;
    const token = await this.#redeem(issuance, wallet, code);
    if (token === undefined) return;
    for (let tries = 0; tries < 2; tries++) if (await this.#collect(issuance, wallet, token)) break;
    if (Math.random() < 0.2) await this.#redeem(issuance, wallet, code, false);
  }

  async #redeem(
    issuance: Issuance,
    wallet: RawWallet,
    code: string,
    isFirst = true,
  ): Promise<string | undefined> {
    const redeem = () => wallet.redeem(code);
    if (!isFirst) {
      const { answer } = await this.#step('redeem again', redeem);
      if (answer.status === 200) this.#world.ledger.redeemed(issuance);
      return undefined;
    }
    const answer = await this.#must('redeem', 200, redeem);
    if (answer === undefined) return undefined;
    this.#world.ledger.redeemed(issuance);
    return answer.body.access_token;
  }

  /** @returns whether a credential came. */
  async #collect(issuance: Issuance, wallet: RawWallet, token: string): Promise<boolean> {
    const { ledger } = this.#world;
    const given = await this.#must('nonce', 200, () =>
      this.#world.deployment.call('POST', `/${wallet.tenant}/nonce`),
    );
    if (given === undefined) return false;
    const nonce: string = given.body.c_nonce;
    const request = () => {
      const jwt = [newKey(), newKey()].map((key) => keyProof(key, wallet.issuer, nonce));
      const body = { credential_configuration_id: CARD.id, proofs: { jwt } };
      return wallet.request(token, CARD.id, { body });
    };
    const answer = await this.#must('credential', 200, request);
    if (answer === undefined) return false;
    ledger.issued(issuance, nonce, answer.body.credentials.map(entryOf));
    this.#issued.push(issuance);
    if (Math.random() < 0.3) {
      const { answer: again } = await this.#step('credential again', request);
      if (again.status === 200) ledger.issued(issuance, nonce, again.body.credentials.map(entryOf));
    }
    return true;
  }

  async #revoke(): Promise<void> {
    const issuance = this.#issued.shift();
    if (issuance === undefined) return void (await pause(20));
    if (Math.random() > REVOKED_SHARE) return;
    const { revocations, session } = issuance;
    await this.#must('revoke', 201, () => {
      revocations.asked++;
      this.#world.ledger.note('revoking', { session });
      return this.#world.call('POST', '/session/revoke', { sessionId: session, status: 1 });
    }).then((answer) => {
      if (answer === undefined) return;
      revocations.told++;
      this.#world.ledger.note('revoked', { session });
    });
    await pause(Math.random() * 20);
  }

  async #administer(): Promise<void> {
    const { config } = this.#world.ledger;
    const number = ++config.asked;
    const json = { display: [{ name: `Version ${number}`, locale: 'en' }], batchSize: 10 };
    const written = await this.#must('configure', 201, () =>
      this.#world.call('POST', '/issuer/config', json),
    );
    if (written !== undefined) config.told = number;
    await pause(50);
  }

  async #present(isHooked: boolean): Promise<void> {
    const { deployment, ledger, held } = this.#world;
    const json = { response_type: 'uri', requestId: isHooked ? 'hooked' : 'plain' };
    const made = await this.#must('request', 201, () => this.#world.call('POST', '/verifier/offer', json));
    if (made === undefined) return;
    const presentation = ledger.requested(made.body.session, isHooked);
    const url = new URL(made.body.uri).searchParams.get('request_uri') ?? '';
    const fetched = await this.#must('fetch request', 200, () => deployment.call('GET', url));
    const shown = held[Math.floor(Math.random() * held.length)];
    if (fetched === undefined || shown === undefined) return;
    const asked = decode(fetched.text);
    const answer = async () => {
      const vp_token = { card: [bind(asked, shown)] };
      const form = { response: await encrypt(asked, { vp_token, state: asked.payload['state'] }) };
      presentation.wasAnswered = true;
      ledger.note('presenting', { session: presentation.session });
      return deployment.call('POST', asked.payload['response_uri'], { form });
    };
    const taken = await this.#must('presentation', 200, answer);
    presentation.wasRefused = taken === undefined;
    if (taken === undefined) return;
    ledger.presented(presentation);
    await this.#comeBack(presentation, taken.body.redirect_uri);
    if (Math.random() < 0.3) {
      const { answer: again } = await this.#step('presentation again', answer);
      if (again.status === 200) ledger.presented(presentation);
    }
  }

  /** With the response code, and then as somebody who has a copy of it. */
  async #comeBack(presentation: Presentation, address: string): Promise<void> {
    const code = new URL(address).searchParams.get('response_code') ?? '';
    const path = `/session/${presentation.session}?response_code=${encodeURIComponent(code)}`;
    const bring = () => this.#world.call('GET', path);
    const seen = await this.#must('response code', 200, bring);
    if (seen !== undefined) this.#world.ledger.brought(presentation);
    const { answer } = await this.#step('response code again', bring);
    if (answer.status === 200) this.#world.ledger.brought(presentation);
  }
}

function entryOf({ credential }: { readonly credential: string }): Entry {
  const { uri, idx } = decode(credential).payload['status'].status_list;
  return { uri, idx, listId: String(uri).split('/').at(-1) ?? '' };
}
