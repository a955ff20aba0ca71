import { z } from 'zod';
import type { ServiceSettings } from '../../../application/ports/settings.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { type Reply, type Route, route } from '../route.ts';
import { GuideFiles } from './guide-files.ts';

const NOT_BUILT = 'the documentation of this clone was not built: run "npm run docs:build"';
const IMMUTABLE = { 'Cache-Control': 'public, max-age=31536000, immutable' } as const;
const CACHED = { 'Cache-Control': 'public, max-age=3600' } as const;
const Name = z.string().max(100);
const common = { tag: 'Service', surface: 'document', access: 'public', method: 'get' } as const;
const responses = { 200: 'A page, a script, a style sheet or an image' } as const;

/** The documentation of this release, for people. */
export function guideRoutes({ publicUrl }: Pick<ServiceSettings, 'publicUrl'>): readonly Route[] {
  const base = new URL(publicUrl).pathname.replace(/\/$/, '');
  const files = new GuideFiles(base);
  const serve = async (name: string): Promise<Reply> => {
    const file = await files.read(name);
    if (file === undefined) throw new Failure('not_found', files.isBuilt ? 'unknown address' : NOT_BUILT);
    const headers = { ...(file.isHashed ? IMMUTABLE : CACHED), 'Content-Security-Policy': policy(file.scriptHashes) };
    return { status: 200, text: file.content, contentType: file.contentType, headers };
  };
  return [
    route({
      ...common,
      path: '/docs/guide',
      operationId: 'getGuide',
      summary: 'The documentation of this release',
      responses: { 302: 'The first page' },
      handle: () => ({ status: 302, empty: true, headers: { Location: `${base}/docs/guide/index.html` } }),
    }),
    route({
      ...common,
      path: '/docs/guide/:file',
      operationId: 'getGuidePage',
      exampleParameters: { file: 'index.html' },
      summary: 'A page of the documentation',
      params: z.object({ file: Name }),
      responses,
      handle: ({ params: { file } }) => serve(file),
    }),
    route({
      ...common,
      path: '/docs/guide/:folder/:file',
      operationId: 'getGuideFile',
      exampleParameters: { folder: 'guides', file: 'first-hour.html' },
      summary: 'A page or a file of the documentation',
      params: z.object({ folder: Name, file: Name }),
      responses,
      handle: ({ params: { folder, file } }) => serve(`${folder}/${file}`),
    }),
    route({
      ...common,
      path: '/docs/guide/assets/chunks/:file',
      operationId: 'getGuideScript',
      exampleParameters: { file: 'metadata.js' },
      summary: 'A script of the documentation',
      params: z.object({ file: Name }),
      responses,
      handle: ({ params: { file } }) => serve(`assets/chunks/${file}`),
    }),
  ];
}

/** Allows resources of this service and the inline scripts of the page. */
function policy(scriptHashes: readonly string[]): string {
  const scripts = ["'self'", ...scriptHashes.map((digest) => `'sha256-${digest}'`)].join(' ');
  return (
    `default-src 'none'; script-src ${scripts}; style-src 'self'; img-src 'self' data:; font-src 'self'; ` +
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
  );
}
