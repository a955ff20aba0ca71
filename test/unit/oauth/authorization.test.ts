import { expect } from 'chai';
import {
  type Authorization,
  type AuthorizationStage,
  handleOfRequestUri,
  isCurrent,
  moveOn,
  NEXT_STAGES,
  REQUEST_URI_PREFIX,
  wasOpened,
} from '../../../domain/oauth/authorization.ts';
import { hashSecret, isSecret, makeHandle, readHandle } from '../../../domain/oauth/handle.ts';

const STAGES = Object.keys(NEXT_STAGES) as AuthorizationStage[];

describe('An authorization', () => {
  for (const stage of STAGES) {
    for (const next of STAGES) {
      const follows = (NEXT_STAGES[stage] as readonly string[]).includes(next);
      it(`that is ${stage} ${follows ? 'becomes' : 'never becomes'} ${next}`, () => {
        const move = () => moveOn({ stage, version: 3 } as Authorization, { stage: next });
        if (follows) expect(move()).to.include({ stage: next, version: 4 });
        else expect(move).to.throw(`does not become ${next}`);
      });
    }
  }

  it('has no interaction at its end where there was none', () => {
    expect(moveOn({ stage: 'pushed', version: 1 } as Authorization, { stage: 'done' })).to.deep.equal({
      stage: 'done',
      version: 2,
    });
  });

  it('was opened once a browser came, with its request or to a page', () => {
    const web = { kind: 'web', browserHash: 'h' };
    const opened = (pending: object | undefined, isOpened?: boolean) =>
      wasOpened({ isOpened, interaction: { pending } } as unknown as Authorization);
    expect([opened(web), opened(undefined, true), opened({ kind: 'web' }, true)]).to.deep.equal(
      Array(3).fill(true),
    );
    expect([opened({ kind: 'web' }), opened({ kind: 'presentation' }), opened(undefined)]).to.deep.equal(
      Array(3).fill(false),
    );
  });
});

describe('The handle of an authorization', () => {
  const [id, secret] = ['i'.repeat(16), 's'.repeat(20)];
  const now = new Date('2026-06-01T12:00:00Z');
  const later = new Date('2026-06-01T12:00:01Z');
  const made = { id, stage: 'opened', expiresAt: later, handles: { page: hashSecret(secret) } };
  const current = (changes: object = {}, handle = makeHandle(id, secret)) =>
    isCurrent({ ...made, ...changes } as unknown as Authorization, 'page', handle, now);

  it('counts for its purpose, while the authorization is not over', () => {
    expect(current()).to.equal(true);
    const other = makeHandle('j'.repeat(16), secret);
    const wrong = [
      current({ stage: 'done' }),
      current({ expiresAt: now }),
      current({ handles: {} }),
      current({}, other),
      current({}, makeHandle(id, 't'.repeat(20))),
      current({}, 'nonsense'),
      isCurrent(undefined, 'page', other, now),
    ];
    expect(wrong).to.deep.equal(Array(7).fill(false));
  });

  it('is read from a request URI of this service alone', () => {
    expect(handleOfRequestUri(`${REQUEST_URI_PREFIX}x`)).to.equal('x');
    expect(() => handleOfRequestUri('https://wallet.example/request')).to.throw('unknown, expired or used');
  });

  it('is an id and a secret, and nothing else is', () => {
    expect(readHandle(makeHandle(id, secret))).to.deep.equal({ id, secret });
    for (const text of ['', 'nonsense', `${id}.`, `${id}.short`, ` ${id}.${secret}`]) {
      expect(readHandle(text), text).to.equal(undefined);
    }
    expect([isSecret(secret, undefined), isSecret(secret, 'short')]).to.deep.equal([false, false]);
  });
});
