if exists('b:did_ftplugin')
  finish
endif
let b:did_ftplugin = 1

setlocal comments=b:##,b:# commentstring=#\ %s formatoptions+=croql formatoptions-=t
setlocal expandtab shiftwidth=4 softtabstop=4 textwidth=120

let b:undo_ftplugin = 'setlocal comments< commentstring< formatoptions< expandtab< shiftwidth< softtabstop< textwidth<'
