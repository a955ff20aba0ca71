import type { Container } from 'inversify';
import type { Family, Route } from '../adapters/http/route.ts';
import { documentationRoutes } from '../adapters/http/service/documentation.routes.ts';
import { ServiceSettings } from '../application/ports/settings.ts';
import { FEATURES } from './modules/all.ts';
import { identifierOf } from './wire.ts';

/** The whole route table; the API document is made of it and is part of it. */
export function collectRoutes(container: Container): readonly Route[] {
  const settings = container.get(ServiceSettings);
  const families: readonly Family[] = [
    ...FEATURES.flatMap(({ open = [] }) => open),
    ...FEATURES.flatMap(({ administered = [] }) => administered),
  ];
  const routes = families.flatMap((make) => make((token) => container.get(identifierOf(token))));
  // Loaded when somebody asks for the document: an idle process can do without what builds it.
  const document = async (): Promise<object> => {
    const { buildOpenApi } = await import('../adapters/http/openapi.ts');
    return buildOpenApi(all, settings);
  };
  const all: readonly Route[] = [...routes, ...documentationRoutes(document, settings)];
  return all;
}
