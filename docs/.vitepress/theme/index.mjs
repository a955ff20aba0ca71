import './style.css';

// The fonts of the default theme are 1.3 MB; those of the system are there already.
export { default } from 'vitepress/theme-without-fonts';
