import { useEffect, useRef, useState } from 'preact/hooks';
import { made } from '../api/made.ts';
import { About } from '../parts/about.tsx';
import { Calls } from '../parts/calls.tsx';
import { Said } from '../parts/said.tsx';
import { AnotherLogin, openLogin } from './another-login.tsx';
import { choose, current, identities, leave } from './identities.ts';
import { Login } from './login.tsx';
import { OpenPage } from './open-page.tsx';
import { Openable } from './openable.ts';
import { PAGES, type PageEntry } from './pages.ts';
import { Palette } from './palette.tsx';
import { linkTo, place, settle } from './place.ts';

/** The frame of every page: who one is, where one can go, and what was asked of the service. */
export function Shell() {
  const identity = current.value;
  const pages = identity === undefined ? [] : PAGES.filter(({ may }) => may(identity));
  const { page } = place.value;
  const open = pages.find(({ name }) => name === page) ?? pages[0];
  useEffect(() => {
    if (open !== undefined && page !== '' && open.name !== page) settle(page, open.name);
  }, [open, page]);
  if (identity === undefined) return <Login />;
  return (
    <div class="frame">
      <nav aria-label="Skip">
        <button type="button" class="skip" onClick={toMain}>
          To the content
        </button>
      </nav>
      <Header pages={pages} />
      <Navigation pages={pages} open={open} />
      <main id="content" tabIndex={-1} aria-label={open?.title}>
        <Openable.Provider value={pages.map(({ name }) => name)}>
          {open === undefined ? <Nothing /> : <OpenPage entry={open} identity={identity} />}
        </Openable.Provider>
      </main>
      <Said />
      <Palette pages={pages} identity={identity} />
    </div>
  );
}

function toMain(): void {
  document.getElementById('content')?.focus();
}

function Nothing() {
  return (
    <>
      <h1>Nothing to show</h1>
      <p>This client has no role that any page is for. Whoever manages clients of the tenant can give it some.</p>
    </>
  );
}

function Header({ pages }: { readonly pages: readonly PageEntry[] }) {
  const [isShown, setShown] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  const close = () => {
    setShown(false);
    opener.current?.focus();
  };
  const { page, id } = place.value;
  useEffect(() => setShown(false), [page, id]);
  useEffect(() => {
    if (!isShown) return;
    const onKey = ({ key }: KeyboardEvent) => {
      // A dialog above it takes the key for itself.
      if (key === 'Escape' && document.querySelector('dialog[open]') === null) close();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [isShown]);
  return (
    <header class="bar">
      <a class="brand" href={linkTo(pages[0]?.name ?? '')}>
        <span aria-hidden="true">◉</span> Vidimus
      </a>
      <button type="button" class="quiet" aria-keyshortcuts="Control+K" onClick={openPalette}>
        Find <kbd>Ctrl K</kbd>
      </button>
      <button ref={opener} type="button" class="quiet" aria-expanded={isShown} onClick={() => setShown(!isShown)}>
        Calls <span class="count">{made.value.length}</span>
      </button>
      {isShown && <Calls close={close} />}
      <WhoAmI />
    </header>
  );
}

function openPalette(): void {
  dispatchEvent(new Event('open-palette'));
}

function WhoAmI() {
  const identity = current.value;
  return (
    <div class="who">
      <label>
        <span class="hidden">You are</span>
        <select value={identity?.clientId} onChange={(event) => choose(event.currentTarget.value)}>
          {identities.value.map(({ clientId, tenantId }) => (
            <option key={clientId} value={clientId}>
              {clientId} · {tenantId ?? 'the service'}
            </option>
          ))}
        </select>
      </label>
      <button type="button" class="quiet" onClick={openLogin}>
        Add
        <About about="a client" />
      </button>
      <button type="button" class="quiet" onClick={() => identity && leave(identity.clientId)}>
        Log out
      </button>
      <AnotherLogin />
    </div>
  );
}

const GROUPS: readonly PageEntry['group'][] = ['Start', 'Work', 'Set up', 'Operate'];

function Navigation({ pages, open }: { readonly pages: readonly PageEntry[]; readonly open?: PageEntry | undefined }) {
  return (
    <nav class="side" aria-label="Pages">
      {GROUPS.map((group) => {
        const entries = pages.filter((entry) => entry.group === group);
        return (
          entries.length > 0 && (
            <div key={group}>
              <p aria-hidden="true">{group}</p>
              <ul aria-label={group}>
                {entries.map(({ name, title }) => (
                  <li key={name}>
                    <a href={linkTo(name)} aria-current={name === open?.name ? 'page' : undefined}>
                      {title}
                    </a>
                  </li>
                ))}
              </ul>
            </div>
          )
        );
      })}
    </nav>
  );
}
