autocmd BufRead,BufNewFile *.ocn setfiletype ocn
