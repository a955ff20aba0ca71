import { bind, decode, encrypt } from '../support/present.ts';
import type { Presentation } from './ledger.ts';
import type { Steps } from './steps.ts';
import type { World } from './world.ts';

const REPEATED_SHARE = 0.3;

/** Is asked for a presentation, answers, and comes back; and somebody tries the same with copies. */
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
    const made = await this.#steps.must('request', 201, make);
    if (made === undefined) return;
    const presentation = ledger.requested(made.body.session, isHooked);
    const url = new URL(made.body.uri).searchParams.get('request_uri') ?? '';
    const fetched = await this.#steps.must('fetch request', 200, () => deployment.call('GET', url));
    const shown = held[Math.floor(Math.random() * held.length)];
    if (fetched === undefined || shown === undefined) return;
    const asked = decode(fetched.text);
    const answer = async () => {
      const vp_token = { card: [bind(asked, shown)] };
      const form = { response: await encrypt(asked, { vp_token, state: asked.payload['state'] }) };
      ledger.note('presenting', { session: presentation.session });
      return deployment.call('POST', asked.payload['response_uri'], { form });
    };
    const taken = await this.#steps.must('presentation', 200, answer);
    presentation.wasRefused = taken === undefined;
    if (taken === undefined) return;
    ledger.presented(presentation);
    await this.#comeBack(presentation, taken.body.redirect_uri);
    if (Math.random() > REPEATED_SHARE) return;
    const { answer: again } = await this.#steps.take('presentation again', answer);
    if (again.status === 200) ledger.presented(presentation);
  }

  /** With the response code, and then as somebody who has a copy of it. */
  async #comeBack(presentation: Presentation, address: string): Promise<void> {
    const code = new URL(address).searchParams.get('response_code') ?? '';
    const path = `/session/${presentation.session}?response_code=${encodeURIComponent(code)}`;
    const bring = () => this.#world.call('GET', path);
    const seen = await this.#steps.must('response code', 200, bring);
    if (seen !== undefined) this.#world.ledger.brought(presentation);
    const { answer } = await this.#steps.take('response code again', bring);
    if (answer.status === 200) this.#world.ledger.brought(presentation);
  }
}
