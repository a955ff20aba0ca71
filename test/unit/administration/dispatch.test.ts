import { expect } from 'chai';
import type { Request, RequestHandler, Response } from 'express';
import { type Answering, dispatcher } from '../../../adapters/http/dispatch.ts';

type Said = { readonly answer?: string; readonly params?: unknown; readonly error?: unknown };

describe('Addresses', () => {
  /** What the routes, each known by its place, say to a request. */
  function ask(
    routes: readonly (readonly [string, string, ...RequestHandler[]])[],
    method: string,
    path: string,
  ) {
    return new Promise<Said>((resolve) => {
      const all = routes.map(([wanted, pattern, ...before], place): Answering => {
        const answer: RequestHandler = ({ params }) =>
          resolve({ answer: `${place} ${pattern}`, params: { ...params } });
        return { method: wanted, path: pattern, handlers: [...before, answer] };
      });
      const request = { method, path } as Request;
      const run = dispatcher(all)(request);
      if (run === undefined) resolve({ error: undefined });
      else run(request, {} as Response, (error) => resolve({ error }));
    });
  }

  it('lead to the route of their method and form, with the names of their segments', async () => {
    const routes = [
      ['get', '/session'],
      ['get', '/session/:id'],
      ['delete', '/session/:id'],
      ['get', '/:tenant/offer/:id'],
      ['get', '/'],
    ] as const;
    expect(await ask(routes, 'GET', '/session')).to.deep.equal({ answer: '0 /session', params: {} });
    expect(await ask(routes, 'GET', '/session/a%20b')).to.deep.equal({
      answer: '1 /session/:id',
      params: { id: 'a b' },
    });
    expect(await ask(routes, 'DELETE', '/session/1')).to.deep.include({ answer: '2 /session/:id' });
    expect(await ask(routes, 'GET', '/acme/offer/__proto__')).to.deep.equal({
      answer: '3 /:tenant/offer/:id',
      params: { tenant: 'acme', id: '__proto__' },
    });
    expect(await ask(routes, 'GET', '/')).to.deep.include({ answer: '4 /' });
  });

  it('of no route are nobody’s', async () => {
    const routes = [
      ['get', '/session/:id'],
      ['get', '/Session'],
    ] as const;
    for (const path of [
      '/session',
      '/session/',
      '/session//',
      '/session/1/',
      '//session/1',
      '/SESSION/1',
      '/',
    ])
      expect(await ask(routes, 'GET', path), path).to.deep.equal({ error: undefined });
    expect(await ask(routes, 'POST', '/session/1')).to.deep.equal({ error: undefined });
  });

  it('that several routes fit go to the first, and on to the next when it says so', async () => {
    const pass: RequestHandler = (_request, _response, next) => next('route');
    const both = [
      ['get', '/:tenant/:name'],
      ['get', '/session/:id'],
    ] as const;
    expect(await ask(both, 'GET', '/session/1')).to.deep.include({ answer: '0 /:tenant/:name' });
    const passing = [['get', '/:tenant/:name', pass], ['get', '/session/:id'] as const] as const;
    expect(await ask(passing, 'GET', '/session/1')).to.deep.equal({
      answer: '1 /session/:id',
      params: { id: '1' },
    });
    expect(await ask(passing, 'GET', '/acme/1')).to.deep.equal({ error: undefined });
  });

  it('are asked for with HEAD as with GET', async () => {
    expect(await ask([['get', '/list']], 'HEAD', '/list')).to.deep.include({ answer: '0 /list' });
    expect(await ask([['post', '/list']], 'HEAD', '/list')).to.deep.equal({ error: undefined });
  });

  it('whose segments are no text are an error, and so is what a handler throws, now or later', async () => {
    const unreadable = await ask([['get', '/session/:id']], 'GET', '/session/%ff');
    expect(unreadable.error).to.be.instanceOf(URIError);
    const fault = new Error('broken');
    const thrown: RequestHandler = () => {
      throw fault;
    };
    const rejected = (async () => Promise.reject(fault)) as unknown as RequestHandler;
    // The one before it goes on within a promise of its own.
    const later = (async (_request: Request, _response: Response, next: () => void) => {
      await Promise.resolve();
      next();
    }) as unknown as RequestHandler;
    for (const handlers of [[thrown], [rejected], [later, thrown]])
      expect(await ask([['get', '/a', ...handlers]], 'GET', '/a')).to.deep.equal({ error: fault });
  });

  it('have parameters that are whole segments', () => {
    const handlers: readonly RequestHandler[] = [];
    expect(() => dispatcher([{ method: 'get', path: '/list-:id', handlers }])).to.throw('whole segment');
  });
});
