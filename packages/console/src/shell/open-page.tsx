import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Problem } from '../parts/problem.tsx';
import type { Identity } from './identities.ts';
import { focus } from './keep-focus.ts';
import type { PageProps } from './page-props.ts';
import type { PageEntry } from './pages.ts';
import { place } from './place.ts';

type Loaded = { readonly name: string; readonly Page?: ComponentType<PageProps>; readonly fault?: unknown };

/** Loads a page and shows it; a person who uses a screen reader hears that it changed. */
export function OpenPage({ entry, identity }: { readonly entry: PageEntry; readonly identity: Identity }) {
  const [loaded, setLoaded] = useState<Loaded>();
  useEffect(() => {
    document.title = `${entry.title} · Vidimus`;
    let isWanted = true;
    entry
      .load()
      .then(({ default: Page }) => isWanted && setLoaded({ name: entry.name, Page }))
      .catch((fault: unknown) => isWanted && setLoaded({ name: entry.name, fault: explain(fault) }));
    return () => {
      isWanted = false;
    };
  }, [entry]);
  const { id } = place.value;
  useEffect(() => {
    // Who chooses at the top who they are stays there.
    if (loaded?.name !== entry.name || document.activeElement?.closest('select')) return;
    const main = document.getElementById('content');
    focus(main?.querySelector('h1') ?? main);
  }, [loaded, entry, id]);
  if (loaded?.name !== entry.name) return <p aria-busy="true">Loading {entry.title}</p>;
  if (loaded.Page === undefined) return <Problem fault={loaded.fault} />;
  // Another client sees other things: nothing of what the page knew may stay.
  return <loaded.Page key={`${identity.clientId} ${id}`} identity={identity} id={id} />;
}

/** After an upgrade the files of the former release are gone. */
function explain(fault: unknown): unknown {
  return fault instanceof TypeError
    ? new Error('This page cannot be loaded. If the service was upgraded, reload the window and log in again.')
    : fault;
}
